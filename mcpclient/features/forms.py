"""Forms that servers have people fill in: defaults filled in, answers checked. Asks nobody.

A form is a flat JSON Schema. It comes from the server and may be anything: what is not understood
of it is no problem, since the server checks again what it gets. Nothing here recurses, loads a
reference or runs a server's pattern that might not end. What a person entered is never put into
a sentence: it may be a secret, and sentences end up in logs.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, time
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Whoever reads so many has understood.
_MOST_PROBLEMS = 20
_MOST_OPTIONS = 10
# How many steps all patterns of a form may take at the worst (some ten milliseconds), and how
# long each may be.
_MOST_STEPS = 10_000_000
_MOST_PATTERN = 200


def filled(schema: object, content: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was entered, with the form's defaults in the fields that were left out.

    A default that does not fit its own field is left out as well. A field that holds null was not
    left out.

    Args:
        schema: The form, ``requestedSchema``.
        content: What was entered, by field; None for nothing. It stays as it is.

    Raises:
        LocalProtocolError: The content is no mapping.
    """
    if not isinstance(content, Mapping | None):
        raise LocalProtocolError(
            f"what was entered must be a mapping by field, not {type(content).__name__}"
        )
    found = dict(content or {})
    for name, field in (_fields(schema) or {}).items():
        if name in found or not isinstance(field, Mapping) or "default" not in field:
            continue
        default = field["default"]
        if _problem(field, default) is None:
            found[name] = list(default) if isinstance(default, list | tuple) else default
    return found


def problems(schema: object, content: Mapping[str, Any]) -> list[str]:
    """Return why an answer does not fit a form, one sentence each; none if it fits.

    Args:
        schema: The form, ``requestedSchema``.
        content: What is to be sent, by field.
    """
    found: list[str] = []
    for sentence in _all_problems(schema, content):
        if len(found) == _MOST_PROBLEMS:
            found.append("there are more problems")
            break
        found.append(sentence)
    return found


def _all_problems(schema: object, content: Mapping[str, Any]) -> Iterator[str]:
    fields = _fields(schema)
    required = schema.get("required") if isinstance(schema, Mapping) else None
    named = required if isinstance(required, list | tuple) else ()
    for name in dict.fromkeys(one for one in named if isinstance(one, str)):
        if name not in content:
            yield f"the {_named(name)} is required"
    left: float = _MOST_STEPS
    for name, value in content.items():
        if fields is not None and name not in fields:
            yield f"the form has no {_named(name)}"
            continue
        field = (fields or {}).get(name)
        problem = _problem(field, value)
        if problem is not None:
            yield f"the {_named(name)} {problem}"
        elif isinstance(field, Mapping) and isinstance(value, str):
            pattern = field.get("pattern")
            if isinstance(pattern, str) and (steps := _steps(pattern, value)) <= left:
                left -= steps
                if not _matches(pattern, value):
                    yield f"the {_named(name)} must match the pattern {printable(pattern)}"


def _fields(schema: object) -> Mapping[str, object] | None:
    """Return the form's fields by name, or None if it cannot be told which it has."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _named(name: object) -> str:
    return f'field "{printable(str(name), 100)}"'


# -- one field -----------------------------------------------------------------------------


def _problem(field: object, value: object) -> str | None:
    """Return what is wrong with a value, as the rest of a sentence, or None."""
    if value is None:
        return "must not be null; leave it out"
    known = field if isinstance(field, Mapping) else {}
    kind = known.get("type")
    if isinstance(kind, str) and kind in _CHECKS:
        return _CHECKS[kind](known, value)
    if not _sendable(value):
        # Whatever the form says, the protocol carries nothing else (ELI-14).
        return "must be text, a number, true or false, or a list of texts"
    return _among(known, value)


def _sendable(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str | bool) or _is_number(value)


def _text(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, str):
        return f"must be text, not {_kind(value)}"
    least, most = _whole(field.get("minLength")), _whole(field.get("maxLength"))
    if least is not None and len(value) < least:
        return f"must have at least {least} characters"
    if most is not None and len(value) > most:
        return f"must have at most {most} characters"
    wanted = field.get("format")
    if isinstance(wanted, str) and wanted in FORMATS:
        what, fits = FORMATS[wanted]
        if not fits(value):
            return f"must be {what}"
    return _among(field, value)


def _number(field: Mapping[str, Any], value: object) -> str | None:
    if not _is_number(value):
        return f"must be a number, not {_kind(value)}"
    return _within(field, value) or _among(field, value)


def _integer(field: Mapping[str, Any], value: object) -> str | None:
    if not _is_number(value):
        return f"must be a whole number, not {_kind(value)}"
    if value != math.floor(value):
        return "must be a whole number"
    return _within(field, value) or _among(field, value)


def _boolean(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, bool):
        return f"must be true or false, not {_kind(value)}"
    return _among(field, value)


def _list(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        return f"must be a list of texts, not {_kind(value)}"
    least, most = _whole(field.get("minItems")), _whole(field.get("maxItems"))
    if least is not None and len(value) < least:
        return f"must have at least {least} of the choices"
    if most is not None and len(value) > most:
        return f"must have at most {most} of the choices"
    items = field.get("items")
    options = choices(items) if isinstance(items, Mapping) else None
    if options is not None and not set(value) <= {one for one in options if isinstance(one, str)}:
        return f"may hold only {_shown(options)}"
    return None


_CHECKS: Final[dict[str, Callable[[Mapping[str, Any], Any], str | None]]] = {
    "string": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "array": _list,
}


def _is_number(value: object) -> TypeGuard[int | float]:
    # JSON has neither NaN nor infinities, and True is no number of it. What is larger than any
    # float is none that two programs would agree on.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _whole(value: object) -> int | None:
    """Return a bound of a schema, where 3.0 is 3; None if it is none."""
    return int(value) if _is_number(value) and value == math.floor(value) else None


def _within(field: Mapping[str, Any], value: float) -> str | None:
    least, most = field.get("minimum"), field.get("maximum")
    if _is_number(least) and value < least:
        return f"must be at least {least}"
    if _is_number(most) and value > most:
        return f"must be at most {most}"
    return None


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number" if _is_number(value) else "one that JSON cannot say"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__


# -- choices -------------------------------------------------------------------------------


def choices(part: Mapping[str, Any]) -> list[Any] | None:
    """Return the values to choose from, or None if it cannot be told which they are.

    ``enumNames`` and ``title`` are for people and no values.
    """
    listed = part.get("enum")
    if isinstance(listed, list | tuple) and listed:
        return list(listed)
    for key in ("oneOf", "anyOf"):
        titled = part.get(key)
        if isinstance(titled, list | tuple) and titled:
            if all(isinstance(one, Mapping) and "const" in one for one in titled):
                return [one["const"] for one in titled]
    return None


def _among(field: Mapping[str, Any], value: object) -> str | None:
    options = choices(field)
    # By type as well: in Python True is 1.
    if options is None or any(
        isinstance(one, bool) == isinstance(value, bool) and one == value for one in options
    ):
        return None
    return f"must be one of {_shown(options)}"


def _shown(options: list[Any]) -> str:
    named = [
        f'"{printable(one, 50)}"' if isinstance(one, str) else str(one).lower()
        for one in options
        if isinstance(one, str | bool) or _is_number(one)
    ]
    more = f" and {len(named) - _MOST_OPTIONS} more" if len(named) > _MOST_OPTIONS else ""
    return ", ".join(named[:_MOST_OPTIONS]) + more or "what the form offers"


# -- formats and patterns ------------------------------------------------------------------

_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|[+-]([0-9]{2}):([0-9]{2}))"
)


def _is_email(value: str) -> bool:
    local, at, domain = value.rpartition("@")
    if not at or not local or any(one.isspace() for one in domain):
        return False
    quoted = len(local) > 1 and local[0] == local[-1] == '"'
    if not quoted and any(one.isspace() or one == "@" for one in local):
        return False
    return all(domain.split("."))


def _is_uri(value: str) -> bool:
    return _URI.fullmatch(value) is not None


def _is_date(value: str) -> bool:
    # Python's own reader takes more than RFC 3339 has.
    if _DATE.fullmatch(value) is None:
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_date_time(value: str) -> bool:
    found = _TIME.fullmatch(value, 11)
    if found is None or value[10] not in "Tt" or not _is_date(value[:10]):
        return False
    hour, minute, second, *offset = (int(one or 0) for one in found.groups())
    try:
        time(hour, minute, min(second, 59))
        time(offset[0], offset[1])
    except ValueError:
        return False
    return second <= 60  # a leap second


FORMATS: Final[dict[str, tuple[str, Callable[[str], bool]]]] = {
    "email": ("an e-mail address", _is_email),
    "uri": ("a URI, such as https://example.com/", _is_uri),
    "date": ("a date as YYYY-MM-DD", _is_date),
    "date-time": ("a date and time as YYYY-MM-DDThh:mm:ssZ", _is_date_time),
}

# A pattern of single characters in a row, each as often as said: the subset whose worst case can
# be counted. It has no groups and no alternatives, so that nothing repeats what repeats, and
# nothing that Python and JavaScript, whose patterns these are, read differently (such as "\s").
_ESCAPE = r"\\[dwDW.^$*+?()\[\]{}|/-]"
_SET = rf"\[\^?(?:[^\\\[\]^]|{_ESCAPE})+\]"
_ATOM = rf"(?:[^\\\[\](){{}}|*+?.^$]|\.|{_ESCAPE}|{_SET})"
_REPEATED = re.compile(rf"{_ATOM}(?:([*+?])|\{{([0-9]{{1,4}})(?:(,)([0-9]{{1,4}})?)?\}})?")
# What Python's sets may mean one day, and warn about.
_FUTURE = ("--", "&&", "||", "~~")


def _steps(pattern: str, value: str) -> float:
    """Return how many steps it takes to match at the worst, infinity if that cannot be told.

    Python's matcher cannot be stopped, and a hostile pattern keeps it busy for ever. So only
    those are tried whose steps can be counted before. The others are left to the server, as
    patterns are no part of the protocol's forms anyway.
    """
    begins, _, body = _parted(pattern)
    if len(pattern) > _MOST_PATTERN or any(odd in body for odd in _FUTURE):
        return math.inf
    longest = len(value) + 1
    choices = 1 if begins else longest
    width = 1
    place = 0
    while place < len(body):
        found = _REPEATED.match(body, place)
        if found is None:
            return math.inf
        sign, least, comma, most = found.groups()
        width += int(least or 1)
        if sign == "?":
            choices *= 2
        elif sign or (comma and not most):
            choices *= longest
        elif comma:
            choices *= min(longest, max(int(most) - int(least), 0) + 1)
        place = found.end()
    return choices * width


def _matches(pattern: str, value: str) -> bool:
    begins, ends, body = _parted(pattern)
    # In JavaScript "$" is the very end, and "\d" and "\w" are ASCII.
    source = ("^" if begins else "") + body + (r"\Z" if ends else "")
    try:
        return re.search(source, value, re.ASCII) is not None
    except (re.error, OverflowError):
        return True


def _parted(pattern: str) -> tuple[bool, bool, str]:
    begins, ends = pattern.startswith("^"), pattern.endswith("$") and pattern[-2:-1] != "\\"
    return begins, ends, pattern[begins : len(pattern) - ends]
