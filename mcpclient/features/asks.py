"""What servers may ask of this side: roots, a model's answer, a person's. Knows no wire.

In one era these come as requests, in the other as results that want another round; either way a
handler of the user's answers, and only what has a handler is offered to servers at all.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
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

    async def answer(self, server: Any, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of an ask.

        Raises:
            Refuse: The handler refuses, or there is none, or it answers what it must not.
        """
        handler = self._handlers.get(method)
        if handler is None:
            raise Refuse(f"{printable(method, 100)} is not supported by this client", code=-32601)
        if method == "roots/list":
            found = await _called(handler, server)
            return {"roots": [one if isinstance(one, dict) else _root(one) for one in found]}
        _check(method, params)
        answer = msgspec.to_builtins(await _called(handler, server, params))
        if not isinstance(answer, dict):
            raise Refuse(f"the handler of {method} returned no mapping", code=-32603)
        return _elicited(params, answer) if method == "elicitation/create" else answer


async def _called(handler: Callable[..., Any], *facts: Any) -> Any:
    answer = handler(*facts)
    return await answer if hasattr(answer, "__await__") else answer


def _check(method: str, params: Mapping[str, Any]) -> None:
    if method == "sampling/createMessage" and ("tools" in params or "toolChoice" in params):
        # We do not offer sampling.tools (SMP-02).
        raise Refuse("sampling with tools is not supported by this client", code=-32602)
    if method == "elicitation/create" and params.get("mode", "form") not in ("form", "url"):
        raise Refuse(f"the mode {params.get('mode')!r} is not supported", code=-32602)


def _elicited(params: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Return what a person answered, defaults filled in, or refuse to send what does not fit."""
    action = answer.get("action")
    if action not in _ACTIONS:
        raise Refuse(f"the handler's action must be one of {', '.join(_ACTIONS)}", code=-32603)
    if action != "accept":
        return {"action": action}
    if params.get("mode", "form") == "url":
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


def _root(one: Any) -> dict[str, str]:
    if isinstance(one, str) and "://" in one:
        if not one.startswith("file://"):
            raise ValueError(f"a root is a path or a file: URI, not {one!r}")
        return {"uri": one}
    path = Path(one).absolute()
    return {"uri": path.as_uri(), "name": path.name}
