"""Forms that a person fills in: flat schemas, checked before they are sent; answers, checked after.

Knows no client. What was entered never stands in a sentence: it may be a secret.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

import re
from typing import Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.serverkit.schema import Checked, Invalid, json_schema, properties_of

FORMATS = ("email", "uri", "date", "date-time")
_KINDS = ("string", "number", "integer", "boolean", "array")
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class Form:
    """One form.

    Args:
        form: A struct type, or a JSON Schema.

    Attributes:
        schema: Its JSON Schema.

    Raises:
        LocalProtocolError: It is not flat, or holds what no form may.
    """

    def __init__(self, form: Any) -> None:
        self._checked: Checked[Any] | None = None
        if isinstance(form, dict):
            self.schema = form
        else:
            self._checked = Checked(form)
            self.schema = json_schema(form)
            self.schema.pop("title", None)
            self.schema.pop("description", None)
        if self.schema.get("type") != "object":
            raise LocalProtocolError("a form is an object with one property for each field")
        if "$defs" in self.schema:
            raise LocalProtocolError("a form is flat: a field cannot hold another form")
        for name, field in properties_of(self.schema).items():
            _check_field(name, field)

    def read(self, entered: dict[str, Any]) -> tuple[Any, str]:
        """Return what was entered as a value of the form's type, or the mapping; and a problem.

        The problem is an empty string if it fits.
        """
        for name in self.schema.get("required", ()):
            if name not in entered:
                return None, f"the field {name!r} is missing"
        for name, field in properties_of(self.schema).items():
            if name in entered and (problem := _problem(field, entered[name])):
                return None, f"the field {name!r} {problem}"
        if self._checked is None:
            return {
                name: entered[name] for name in properties_of(self.schema) if name in entered
            }, ""
        try:
            return self._checked.check(entered, "content"), ""
        except Invalid as problem:
            return None, str(problem)


def _check_field(name: str, field: Any) -> None:
    kind = field.get("type") if isinstance(field, dict) else None
    if kind not in _KINDS:
        raise LocalProtocolError(
            f"a form is flat: the field {name!r} must be a string, number, integer, boolean or a "
            f"choice, not {kind!r}"
        )
    if kind == "array" and _options(field.get("items")) is None:
        raise LocalProtocolError(f"the field {name!r}: a list must name what can be chosen")
    if kind == "string" and field.get("format") not in (None, *FORMATS):
        raise LocalProtocolError(
            f"the field {name!r}: a format must be one of {', '.join(FORMATS)}, "
            f"not {field['format']!r}"
        )
    if "default" in field and (problem := _problem(field, field["default"])):
        raise LocalProtocolError(f"the field {name!r}: its default {problem}")


def _options(field: Any) -> list[Any] | None:
    """Return what can be chosen, or None if it is no choice."""
    if not isinstance(field, dict):
        return None
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    for key in ("oneOf", "anyOf"):
        if isinstance(field.get(key), list):
            return [one.get("const") for one in field[key] if isinstance(one, dict)]
    return None


def _problem(field: dict[str, Any], value: Any) -> str:
    kind = field["type"]
    if kind == "boolean":
        return "" if isinstance(value, bool) else "must be true or false"
    if kind in ("number", "integer"):
        return _number_problem(field, value, whole=kind == "integer")
    if kind == "array":
        if not isinstance(value, list):
            return "must be a list"
        chosen = _options(field["items"]) or []
        if any(one not in chosen for one in value):
            return f"must hold only {', '.join(map(repr, chosen))}"
        return _length_problem(field, len(value), "Items", "options")
    if not isinstance(value, str):
        return "must be text"
    options = _options(field)
    if options is not None and value not in options:
        return f"must be one of {', '.join(map(repr, options))}"
    return _length_problem(field, len(value), "Length", "characters") or _format_problem(
        field.get("format"), value
    )


def _number_problem(field: dict[str, Any], value: Any, *, whole: bool) -> str:
    if type(value) not in (int, float):
        return "must be a number"
    if whole and value % 1:
        return "must be a whole number"
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and value < low:
        return f"must be at least {low}"
    if high is not None and value > high:
        return f"must be at most {high}"
    return ""


def _length_problem(field: dict[str, Any], length: int, what: str, things: str) -> str:
    low, high = field.get(f"min{what}"), field.get(f"max{what}")
    if low is not None and length < low:
        return f"must have at least {low} {things}"
    if high is not None and length > high:
        return f"must have at most {high} {things}"
    return ""


def _format_problem(kind: str | None, value: str) -> str:
    if kind == "email" and not _EMAIL.fullmatch(value):
        return "must be an e-mail address"
    if kind == "uri" and not _URI.fullmatch(value):
        return "must be a URI"
    if kind in ("date", "date-time"):
        from datetime import date, datetime

        try:
            date.fromisoformat(value) if kind == "date" else datetime.fromisoformat(value)
        except ValueError:
            return f"must be a {kind}"
    return ""
