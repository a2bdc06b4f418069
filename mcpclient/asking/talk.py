"""The talk with a person that answers an ask: what they read, in order, and what comes of it.

A talk is a generator, and knows neither terminal nor notebook: it gives what is to be shown and
read, takes the line that was typed, and returns the answer. Servers' words stand behind a bar, so
that none of them passes for ours.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import UNSET

from mcpclient.asking.pages import page
from mcpclient.asking.questions import Question, Unfit
from mcpclient.features import forms
from mcpclient.ground.text import printable

_YES = ("y", "yes")
_MOST_LINES = 40


class Read(NamedTuple):
    """Show something, and read a line.

    Attributes:
        text: What is shown above; it ends with a newline, or is empty.
        prompt: What stands before the line.
        hidden: Whether what is typed must not be seen.
    """

    text: str
    prompt: str
    hidden: bool = False


class Open(NamedTuple):
    """Open a page in the person's browser: they said so.

    Attributes:
        url: The page; https, or http on this machine.
    """

    url: str


Asked: TypeAlias = Read | Open
# Sent into it: the line, or None at the end of input; of a page any text if it was opened.
Talk: TypeAlias = Generator[Asked, str | None, dict[str, Any]]


class _Ended(Exception):
    """The person wants no more of it."""


def talk(server: str, params: Mapping[str, Any]) -> Talk:
    """Begin a talk about an ``elicitation/create``; it returns an ``ElicitResult``.

    Args:
        server: The server's name, as the person chose it.
        params: What it asks.

    Raises:
        Refuse: It asks to visit what must not be opened.
    """
    name = f'"{printable(server, 100)}"'
    try:
        if params.get("mode") == "url":
            return (yield from _page(name, params))
        return (yield from _form(name, params))
    except _Ended as ended:
        return {"action": str(ended)}


# -- forms -------------------------------------------------------------------------------------


def _form(name: str, params: Mapping[str, Any]) -> Talk:
    schema = params.get("requestedSchema")
    questions = _questions(schema)
    text = f"\n{name} asks:\n{_message(params)}"
    if not questions:
        yield from _agreed(text, f"Agree and tell {name} so? yes or no: ")
        return {"action": "accept", "content": {}}
    text += "(!decline or Ctrl-D declines; you see it all once more before it is sent)\n"
    if any(one.hidden for one in questions):
        text += f"! Servers must not ask for secrets in this way; give {name} none but its own.\n"
    given: dict[str, Any] = {}
    for number, one in enumerate(questions, 1):
        yield from _asked(one, given, one.default, f"{text}\n{number}/{len(questions)}  ")
        text = ""
    while True:
        content = {key: value for key, value in given.items() if value is not UNSET}
        wrong = forms.problems(schema, content)
        text = _review(questions, given) + "".join(f"! {one}\n" for one in wrong)
        sent = (
            "The number of what to change: "
            if wrong
            else f"Send this to {name}? [yes], or the number of what to change: "
        )
        line = (yield from _line(Read(text, sent))).strip().lower()
        if not wrong and line in ("", *_YES):
            return {"action": "accept", "content": content}
        if (
            line.isascii()
            and line.isdigit()
            and len(line) < 10
            and 1 <= int(line) <= len(questions)
        ):
            one = questions[int(line) - 1]
            yield from _asked(one, given, given[one.name], "\n")


def _questions(schema: object) -> list[Question]:
    known = schema if isinstance(schema, Mapping) else {}
    fields, required = known.get("properties"), known.get("required")
    listed = required if isinstance(required, list | tuple) else ()
    named = {one for one in listed if isinstance(one, str)}
    return [
        Question(name, field, required=name in named)
        for name, field in (fields if isinstance(fields, Mapping) else {}).items()
    ]


def _asked(
    one: Question, given: dict[str, Any], kept: object, above: str
) -> Generator[Asked, str | None, None]:
    """Ask until there is an answer that fits, and note it."""
    text = above + "\n".join(one.lines()) + "\n"
    while True:
        line = yield from _line(Read(text, one.prompt(kept), one.hidden))
        try:
            if line.strip() == "!skip":
                if one.required:
                    raise Unfit("it is required")
                given[one.name] = one.default
            else:
                given[one.name] = one.value(line, kept)
        except Unfit as problem:
            text = f"! {problem}\n"
        else:
            return


def _review(questions: list[Question], given: Mapping[str, Any]) -> str:
    wide = min(max(len(one.shown_name) for one in questions), 30)
    return "\n" + "".join(
        f"{number:>3}  {one.shown_name:<{wide}}  {one.said(given[one.name])}\n"
        for number, one in enumerate(questions, 1)
    )


# -- pages -------------------------------------------------------------------------------------


def _page(name: str, params: Mapping[str, Any]) -> Talk:
    found = page(params.get("url"))
    text = (
        f"\n{name} asks you to visit a page:\n{_message(params)}"
        f"  host  {found.host}\n  page  {found.url}\n"
        + "".join(f"! {one}\n" for one in found.warnings)
        + "Visit it only if you know why. What you enter there goes to that host.\n"
    )
    choice = "Agree? open = yes, in your browser; yes = you visit it yourself; no: "
    while True:
        line = (yield from _line(Read(text, choice))).strip().lower()
        if line in ("n", "no"):
            raise _Ended("decline")
        if line in (*_YES, "o", "open"):
            break
        text = ""
    text = ""
    if line not in _YES and (yield Open(found.url)) is None:
        text = "! no browser could be opened; open the page yourself\n"
    # Agreeing is all that the protocol wants. But where the answer has the call made again, it
    # fails again until the person is done there.
    yield from _line(Read(text, "Press Enter when you are done there, or to go on at once: "))
    return {"action": "accept"}


# -- both --------------------------------------------------------------------------------------


def _line(read: Read) -> Generator[Asked, str | None, str]:
    """Read a line; those that end the talk end it."""
    line = yield read
    if line is None or line.strip() == "!decline":
        raise _Ended("decline")
    if line.strip() == "!cancel":
        raise _Ended("cancel")
    return line


def _agreed(text: str, question: str) -> Generator[Asked, str | None, None]:
    while True:
        line = (yield from _line(Read(text, question))).strip().lower()
        if line in _YES:
            return
        if line in ("n", "no"):
            raise _Ended("decline")
        text = ""


def _message(params: Mapping[str, Any]) -> str:
    said = params.get("message")
    lines = said[:20_000].rstrip().split("\n") if isinstance(said, str) else []
    shown = [f"  | {printable(line, 2000)}\n" for line in lines[:_MOST_LINES]]
    return "".join([*shown, *(["  | …\n"] if len(lines) > _MOST_LINES else [])])
