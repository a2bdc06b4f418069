"""URI templates: a template and values in, a URI out. Knows no resource and no server.

All four levels of RFC 6570. Undefined variables (absent, None, an empty list or mapping) vanish.

https://www.rfc-editor.org/rfc/rfc6570
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNRESERVED = r"A-Za-z0-9._~\-"
# Outside of it everything is written as triplets. The second set leaves reserved characters and
# triplets as they are; a "%" that begins no triplet is one of those to be written.
_STRICT = re.compile(f"[^{_UNRESERVED}]")
_LOOSE = re.compile(rf"%(?![0-9A-Fa-f]{{2}})|[^{_UNRESERVED}%:/?#\[\]@!$&'()*+,;=]")
# One character as the prefix modifier counts them where triplets stand for themselves: all
# triplets that make one character of UTF-8, or a lone one, or a character (section 2.4.1).
_COUNTED = re.compile(
    "%[C-Dc-d][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]"
    "|%[Ee][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){2}"
    "|%[Ff][0-7](?:%[89ABab][0-9A-Fa-f]){3}"
    "|%[0-9A-Fa-f]{2}|.",
    re.DOTALL,
)
_EXPRESSION = re.compile(r"(\{[^{}]*\})")
_NAME = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})"
_VARIABLE = re.compile(rf"({_NAME}(?:\.?{_NAME})*)(?:(\*)|:([1-9][0-9]{{0,3}}))?", re.ASCII)


class _Operator(Struct, frozen=True):
    """A column of the table in the RFC's appendix A."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    unsafe: re.Pattern[str] = _STRICT


_OPERATORS = {
    "": _Operator("", ","),
    "+": _Operator("", ",", unsafe=_LOOSE),
    "#": _Operator("#", ",", unsafe=_LOOSE),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, if_empty="="),
    "&": _Operator("&", "&", named=True, if_empty="="),
}


class _Variable(Struct, frozen=True):
    name: str
    explode: bool
    prefix: int | None


class _Expression(Struct, frozen=True):
    operator: _Operator
    variables: list[_Variable]


def expand(template: str, variables: Mapping[str, object]) -> str:
    """Return the URI that a template gives with these values.

    Args:
        template: An RFC 6570 template.
        variables: Text, numbers, booleans, or lists or mappings of these; None is undefined.
            Those that the template does not name are ignored.

    Raises:
        LocalProtocolError: The template is none, or a value cannot stand where it should.
    """
    return "".join(
        _encoded(part, _LOOSE) if isinstance(part, str) else _expanded(part, variables)
        for part in _parts(template)
    )


def variables(template: str) -> list[str]:
    """Return the names of a template's variables in order, each once.

    Raises:
        LocalProtocolError: The template is none.
    """
    expressions = (part for part in _parts(template) if isinstance(part, _Expression))
    return list(dict.fromkeys(one.name for part in expressions for one in part.variables))


def _parts(template: str) -> Iterator[str | _Expression]:
    for place, part in enumerate(_EXPRESSION.split(template)):
        if place % 2:
            yield _expression(part, template)
        elif "{" in part or "}" in part:
            odd = "{" if "{" in part else "}"
            raise _wrong(template, f'a "{odd}" has no partner')
        elif part:
            yield part


def _expression(part: str, template: str) -> _Expression:
    body = part[1:-1]
    sign = body[:1]
    if sign in _OPERATORS:
        body = body[1:]
    elif sign in "=,!@|":
        raise _wrong(template, f"{printable(part, 100)} begins with a sign of no meaning yet")
    else:
        sign = ""
    found = []
    for one in body.split(","):
        match = _VARIABLE.fullmatch(one)
        if match is None:
            raise _wrong(template, f"'{printable(one, 100)}' in {printable(part, 100)} is no name")
        name, explode, prefix = match.groups()
        found.append(_Variable(name, bool(explode), int(prefix) if prefix else None))
    return _Expression(_OPERATORS[sign], found)


def _expanded(expression: _Expression, variables: Mapping[str, object]) -> str:
    operator = expression.operator
    found: list[str] = []
    for variable in expression.variables:
        value = variables.get(variable.name)
        if isinstance(value, Mapping):
            found += _pairs(variable, value, operator)
        elif isinstance(value, list | tuple):
            found += _members(variable, value, operator)
        elif value is not None:
            text = _text(value, variable)
            if variable.prefix is not None:
                text = _prefix(text, variable.prefix, operator)
            found.append(_written(variable.name, _encoded(text, operator.unsafe), operator))
    return operator.first + operator.separator.join(found) if found else ""


def _members(
    variable: _Variable, value: list[object] | tuple[object, ...], operator: _Operator
) -> list[str]:
    _refuse_prefix(variable, "a list")
    members = [
        _encoded(_text(member, variable), operator.unsafe) for member in value if member is not None
    ]
    if not members:
        return []
    if not variable.explode:
        return [_written(variable.name, ",".join(members), operator)]
    return [_written(variable.name, member, operator) for member in members]


def _pairs(variable: _Variable, value: Mapping[object, object], operator: _Operator) -> list[str]:
    _refuse_prefix(variable, "a mapping")
    # The RFC would have a key that stands for a parameter's name written like a literal, so that
    # an "&" in it began the next parameter. It is written like a value, as libraries do.
    pairs = [
        (
            _encoded(_text(key, variable), operator.unsafe),
            _encoded(_text(member, variable), operator.unsafe),
        )
        for key, member in value.items()
        if member is not None
    ]
    if not pairs:
        return []
    if not variable.explode:
        flat = ",".join(f"{key},{member}" for key, member in pairs)
        return [_written(variable.name, flat, operator)]
    if operator.named:
        return [_written(key, member, operator) for key, member in pairs]
    return [f"{key}={member}" for key, member in pairs]


def _written(name: str, value: str, operator: _Operator) -> str:
    if not operator.named:
        return value
    return f"{name}={value}" if value else name + operator.if_empty


def _prefix(text: str, length: int, operator: _Operator) -> str:
    if operator.unsafe is _STRICT:
        return text[:length]
    counted = _COUNTED.finditer(text)
    return "".join(one.group() for _, one in zip(range(length), counted, strict=False))


def _refuse_prefix(variable: _Variable, what: str) -> None:
    if variable.prefix is not None:
        raise LocalProtocolError(
            f"the template cuts the variable {variable.name!r} off after {variable.prefix}, "
            f"so it cannot be {what}; give it as text"
        )


def _text(value: object, variable: _Variable) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise LocalProtocolError(
        f"the variable {variable.name!r} must be text, a number, a boolean, or a list or mapping "
        f"of these; {type(value).__name__} is none"
    )


def _encoded(text: str, unsafe: re.Pattern[str]) -> str:
    try:
        return unsafe.sub(lambda found: _triplets(found.group()), text)
    except UnicodeEncodeError:
        shown = printable(text, 100)
        raise LocalProtocolError(f"'{shown}' holds half a character (a lone surrogate)") from None


def _triplets(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _wrong(template: str, problem: str) -> LocalProtocolError:
    return LocalProtocolError(f"'{printable(template, 200)}' is no URI template: {problem}")
