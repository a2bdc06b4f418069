"""What servers ask a person, on its way to the editor and back. Knows forms, and no window.

A form goes out as a list of fields and comes back as texts by name; what does not fit goes out
again with the reason. Nothing waits: a server has its answer whenever the person gives it, or
none once the library's own time for that is over.
"""

from __future__ import annotations

import itertools
import json
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from mcpclient.cli.schema import Argument, Unfit, arguments
from mcpclient.features.forms import problems
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.handles import Server


class Asking:
    """The questions that are open."""

    def __init__(self, tell: Callable[..., None]) -> None:
        """Begin without any.

        Args:
            tell: Called with ``"ask"``, a number and the question, or ``"unasked"`` and a number.
        """
        self._tell = tell
        self._numbers = itertools.count(1)
        self._open: dict[int, tuple[Future[Any], str, Mapping[str, Any]]] = {}

    def ask(self, server: Server, params: Mapping[str, Any]) -> Future[Any]:
        """Put a question to the person; a handler of ``on_elicit``."""
        number = next(self._numbers)
        future: Future[Any] = Future()

        def ended(future: Future[Any]) -> None:
            if self._open.pop(number, None) is not None:  # the server took it back, or died
                self._tell("unasked", number)

        self._open[number] = future, server.name, params
        future.add_done_callback(ended)
        self._put(number, {}, "")
        return future

    def answer(self, number: int, action: str, values: Mapping[str, str]) -> None:
        """Take the person's answer: ``accept``, ``decline`` or ``cancel``, and what was entered."""
        if number not in self._open:
            return  # it was taken back meanwhile
        future, _, params = self._open[number]
        result: dict[str, Any] = {"action": action}
        if action == "accept" and not _page(params):
            content, wrong = _entered(params.get("requestedSchema"), values)
            if wrong:
                self._put(number, values, wrong)
                return
            result["content"] = content
        del self._open[number]
        if future.set_running_or_notify_cancel():
            future.set_result(result)

    def _put(self, number: int, values: Mapping[str, str], wrong: str) -> None:
        _, server, params = self._open[number]
        question: dict[str, Any] = {
            "server": printable(server, 100),
            "message": printable(str(params.get("message") or "a question"), 500),
            "problem": printable(wrong, 500),
            "url": printable(str(params.get("url")), 2000) if _page(params) else "",
            "fields": [],
        }
        if not _page(params):
            schema = params.get("requestedSchema")
            question["fields"] = [_field(one, values) for one in _arguments(schema)]
        self._tell("ask", number, question)


def _page(params: Mapping[str, Any]) -> bool:
    return params.get("mode") == "url"


def _arguments(schema: object) -> list[Argument]:
    return arguments(schema) if isinstance(schema, dict) else []


def _field(one: Argument, values: Mapping[str, str]) -> dict[str, Any]:
    default = values.get(one.name, "")
    if not default and one.default:
        known = json.loads(one.default) if len(one.default) < 100 else ""
        default = known if isinstance(known, str) else one.default
    choices = [value if isinstance(value, str) else json.dumps(value) for value in one.choices]
    if one.types == {"boolean"}:
        choices = ["true", "false"]
    return {
        "name": one.name,
        "label": printable(one.description or one.name, 200),
        "kind": printable(one.kind, 100),
        "required": one.required,
        "choices": [printable(choice, 200) for choice in choices],
        "values": choices,
        "default": default,
    }


def _entered(schema: object, values: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return what the texts mean, and what is wrong with them."""
    content: dict[str, Any] = {}
    for one in _arguments(schema):
        text = values.get(one.name)
        if text is None or (text == "" and not one.required):
            continue
        try:
            if one.many:
                content[one.name] = [one.convert(part.strip()) for part in text.split(",")]
            else:
                content[one.name] = one.convert(text)
        except Unfit as unfit:
            return {}, f'"{one.name}" must be {unfit}'
    return content, "; ".join(problems(schema, content))
