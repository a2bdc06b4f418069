"""What servers may ask of this side: roots, a model's answer, a person's. Knows no wire.

In one era these come as requests, in the other as results that want another round; either way a
handler of the user's answers, and only what has a handler is offered to servers at all.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable
from mcpclient.protocol.eras import ELICITATION, ROOTS, SAMPLING

Roots = Iterable[str | os.PathLike[str]] | Callable[..., Any]

_METHODS = {
    "roots/list": ROOTS,
    "sampling/createMessage": SAMPLING,
    "elicitation/create": ELICITATION,
}
_ACTIONS = ("accept", "decline", "cancel")
# What a model's answer must have, in every version.
_SAMPLED = ("role", "content", "model")


class Refuse(McpClientError):
    """A handler raises this to refuse what a server asks; the text is told to the server.

    Attributes:
        code: The JSON-RPC error code; -1 says that the user refused (SMP-08).
    """

    def __init__(self, message: str = "the user refused", *, code: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class Asks:
    """The user's handlers."""

    def __init__(
        self,
        roots: Roots | None = None,
        on_sample: Callable[..., Any] | None = None,
        on_elicit: Callable[..., Any] | None = None,
    ) -> None:
        """Take the handlers; None offers nothing.

        Args:
            roots: Paths or ``file:`` URIs, or a function of the server that returns them.
            on_sample: Called with ``(server, params)``, returns a ``CreateMessageResult``.
            on_elicit: Called with ``(server, params)``, returns an ``ElicitResult``.

        Raises:
            ValueError: A root is no path and no ``file:`` URI.
        """
        self._handlers: dict[str, Callable[..., Any]] = {}
        if roots is not None:
            source = roots
            if not callable(source):
                fixed = [_root(one) for one in _listed(source)]
                source = lambda server: fixed  # noqa: E731
            self._handlers["roots/list"] = source
        if on_sample is not None:
            self._handlers["sampling/createMessage"] = on_sample
        if on_elicit is not None:
            self._handlers["elicitation/create"] = on_elicit

    @property
    def offers(self) -> frozenset[str]:
        """What is offered to servers."""
        return frozenset(_METHODS[method] for method in self._handlers)

    def answers(self, method: object) -> bool:
        """Return whether a handler answers a method."""
        return method in self._handlers

    def check(self, method: str, params: Mapping[str, Any]) -> None:
        """Refuse what no handler must be bothered with.

        Raises:
            Refuse: Nothing answers it, or it was never offered.
        """
        if method not in self._handlers:
            raise Refuse(f"{printable(method, 100)} is not supported by this client", code=-32601)
        if method == "sampling/createMessage" and _uses_tools(params):
            # We do not offer sampling.tools (SMP-02), so there is no turn of theirs to get right
            # or wrong either (SMP-07).
            raise Refuse("sampling with tools is not supported by this client", code=-32602)
        if method == "elicitation/create" and _mode(params) not in ("form", "url"):
            raise Refuse("the mode of this elicitation is not supported", code=-32602)
        if method == "elicitation/create" and _mode(params) == "url" and not _safe(params):
            raise Refuse("only https pages are shown to a person", code=-32602)

    async def answer(self, server: Any, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of an ask.

        Raises:
            Refuse: The handler refuses, or there is none, or it answers what it must not.
        """
        self.check(method, params)
        handler = self._handlers[method]
        if method == "roots/list":
            return {"roots": [_root(one) for one in _listed(await _called(handler, server))]}
        answer = msgspec.to_builtins(await _called(handler, server, params))
        if not isinstance(answer, dict):
            raise Refuse(f"the handler of {method} returned no mapping", code=-32603)
        if method == "elicitation/create":
            return _elicited(params, answer)
        if lacking := [name for name in _SAMPLED if answer.get(name) is None]:
            raise Refuse(f"the handler's result lacks {', '.join(lacking)}", code=-32603)
        return answer


async def _called(handler: Callable[..., Any], *facts: Any) -> Any:
    answer = handler(*facts)
    return await answer if hasattr(answer, "__await__") else answer


def _uses_tools(params: Mapping[str, Any]) -> bool:
    if params.get("tools") is not None or params.get("toolChoice") is not None:
        return True
    messages = params.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else [content]:
            if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result"):
                return True
    return False


def _mode(params: Mapping[str, Any]) -> object:
    mode = params.get("mode")
    return "form" if mode is None else mode  # ELI-03


def _safe(params: Mapping[str, Any]) -> bool:
    """Return whether a page may be shown at all: no script, file or the like (SEC-01)."""
    from urllib.parse import urlsplit

    try:
        found = urlsplit(params.get("url") or "")
        near = found.hostname in ("localhost", "127.0.0.1", "::1")
    except (ValueError, TypeError, AttributeError):
        return False
    return bool(found.netloc) and (found.scheme == "https" or (found.scheme == "http" and near))


def _elicited(params: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return what a person answered, defaults filled in, or refuse to send what does not fit."""
    action = answer.get("action")
    if action not in _ACTIONS:
        raise Refuse(f"the handler's action must be one of {', '.join(_ACTIONS)}", code=-32603)
    if action != "accept":
        return {"action": action}
    if _mode(params) == "url":
        return {"action": "accept"}  # consent only; there is no content (ELI-14)
    from mcpclient.features.forms import filled, problems  # only who fills forms needs it

    schema = params.get("requestedSchema")
    content = filled(schema, answer.get("content") or {})
    wrong = problems(schema, content)
    if wrong:
        raise Refuse(f"the answer does not fit the form: {'; '.join(wrong)}", code=-32603)
    return {"action": "accept", "content": content}


def _listed(roots: Any) -> list[Any]:
    if isinstance(roots, str | os.PathLike):
        raise ValueError(f"roots must be a list of paths, not the single path {roots!r}")
    return list(roots)


def _root(one: Any) -> dict[str, Any]:
    if isinstance(one, Mapping):
        return {**one, "uri": _checked(one.get("uri"))}
    if isinstance(one, str) and ("://" in one or one.startswith("file:")):
        return {"uri": _checked(one)}
    from pathlib import Path  # only who names roots needs it

    path = Path(one).absolute()
    if ".." in path.parts:
        path = path.resolve()  # what the system would make of it
    return {"uri": path.as_uri(), "name": path.name}


def _checked(uri: Any) -> str:
    if not isinstance(uri, str) or not uri.startswith("file://"):
        raise ValueError(f"a root is a path or a file: URI, not {uri!r}")
    from urllib.parse import unquote  # only who gives URIs needs it

    if ".." in unquote(uri).replace("\\", "/").split("/"):
        raise ValueError(f"a root's URI must not climb by '..': {uri!r}")  # ROOT-03
    return uri
