"""From what a person writes between the parentheses to what is sent, or to a mistake.

Knows parameters; has never seen a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter as Python
from inspect import Signature
from typing import Any

from mcpclient.ground.text import printable, printable_lines
from mcpclient.repl.mistakes import WrongCall
from mcpclient.repl.names import nearest
from mcpclient.repl.schema import Parameter, Parameters, spelled

_LENGTH = 20_000  # characters of one docstring


class _Untold:
    """A default that the server does not tell. It, or ``...``, leaves the argument out."""

    def __repr__(self) -> str:
        return "..."


UNTOLD = _Untold()


def signature(parameters: Parameters, returns: Any = Signature.empty) -> Signature:
    """Return the parameters as Python has them; ``...`` stands for a default that nobody told."""
    listed = [
        Python(
            one.name,
            Python.POSITIONAL_OR_KEYWORD,
            default=_python_default(one),
            annotation=one.annotation,
        )
        for one in parameters.listed
    ]
    if parameters.open:
        taken = {one.name for one in listed}
        free = next(
            word
            for word in ("more", "more_", *map("more{}".format, range(999)))
            if word not in taken
        )
        listed.append(Python(free, Python.VAR_KEYWORD, annotation=Any))
    return Signature(listed, return_annotation=returns)


def bind(
    name: str, parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by the names that the server knows. One that is ``...`` is left out.

    Args:
        name: What is called, for the sentences.
        parameters: What it takes.
        args: What was given in order.
        kwargs: What was given by name: Python's, or the server's own.

    Raises:
        WrongCall: One too many, unknown, given twice or missing.
    """
    listed = parameters.listed
    if len(args) > len(listed):
        most = f"{len(listed)} argument{'s' if len(listed) != 1 else ''}"
        raise WrongCall(
            f"{name}() takes at most {most} and got {len(args)}; it is {name}{brief(parameters)}"
        )
    given: dict[str, Any] = {}
    for one, value in zip(listed, args, strict=False):
        given[one.wire] = value
    by_name = {one.wire: one for one in listed} | {one.name: one for one in listed}
    for word, value in kwargs.items():
        known = by_name.get(word)
        if known is None and not parameters.open:
            raise WrongCall(
                f"{name}() has no argument {printable(word, 200)!r}"
                + nearest(word, [one.name for one in listed])
            )
        wire = word if known is None else known.wire
        if wire in given:
            raise WrongCall(f"{name}() got {printable(word, 200)!r} twice; give it once")
        given[wire] = value
    left_out = (..., UNTOLD)
    found = {
        wire: value
        for wire, value in given.items()
        if not any(value is one for one in left_out)  # by identity: arrays compare otherwise
    }
    if missing := [one.name for one in listed if one.required and one.wire not in found]:
        needs = " and ".join(map(repr, missing))
        raise WrongCall(f"{name}() needs {needs}; it is {name}{brief(parameters)}")
    return found


def brief(parameters: Parameters) -> str:
    """Return the parameters on one line, as a person would write them down."""
    parts = []
    for one in parameters.listed:
        default = "" if one.required else f" = {_default(one)}"
        parts.append(f"{one.name}: {spelled(one.annotation)}{default}")
    if parameters.open:
        parts.append("**more")
    return printable(f"({', '.join(parts)})", 1000)


def documented(
    parameters: Parameters, title: str, description: str, closing: Sequence[str] = ()
) -> str:
    """Return a docstring.

    Args:
        parameters: What is taken.
        title: The first line if there is no description.
        description: The server's own words; whatever controls a terminal is made visible.
        closing: Lines at the end.
    """
    lines = [_clean(description.strip()) or printable(title)]
    if parameters.listed:
        lines += ["", "Args:"]
    for one in parameters.listed:
        said = _clean(one.description.strip()).rstrip(".").replace("\n", "\n        ")
        notes = [f"{said}." if said else ""]
        if one.default is not ... and not one.required:
            notes.append(f"Default: {_default(one)}.")
        if one.wire != one.name:
            notes.append(f"The server calls it {printable(one.wire, 200)!r}.")
        optional = "" if one.required else ", optional"
        told = " ".join(filter(None, notes))
        lines.append(f"    {one.name} ({spelled(one.annotation)}{optional}): {told}".rstrip(": "))
    if closing:
        lines += ["", *closing]
    return _clean("\n".join(lines))


def _python_default(one: Parameter) -> Any:
    if one.required:
        return Python.empty
    return UNTOLD if one.default is ... else one.default


def _default(one: Parameter) -> str:
    return "..." if one.default is ... else printable(repr(one.default), 200)


def _clean(text: str) -> str:
    return printable_lines(text.replace("\r\n", "\n"), _LENGTH)
