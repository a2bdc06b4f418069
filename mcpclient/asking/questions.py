"""One field of a form as a question: how it is put, and what the line means that answers it.

Whether a value fits is for :mod:`mcpclient.features.forms` to say. The form comes from a server
and may be anything; what it says is shown as one harmless line, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from msgspec import UNSET

from mcpclient.features import forms
from mcpclient.ground.text import printable

# Names of fields whose values nobody must read over a shoulder. Too many rather than too few.
_SECRET = re.compile(
    r"passw|passphrase|passcode|pwd|secret|token|credential|api.?key|private.?key|\bpin\b|\botp\b",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<=[a-z])(?=[A-Z])|[_\W]+")
_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_YES_OR_NO = {
    **dict.fromkeys(("y", "yes", "true", "1", "on"), True),
    **dict.fromkeys(("n", "no", "false", "0", "off"), False),
}
# What says that an empty text, or an empty list, is meant and not nothing.
_EMPTY = '""'
_MOST_CHOICES = 100
_MOST_LINES = 20


class Unfit(Exception):
    """A line that is no answer; the text says why, for the person."""


class Question:
    """One field.

    Attributes:
        name: The field's name, as the server has it.
        shown_name: The same, safe to print.
        hidden: Whether what is typed must not be seen.
        default: The form's default, if it has one that fits; else ``UNSET``.
        required: Whether it must have a value.
    """

    def __init__(self, name: str, field: object, *, required: bool) -> None:
        """Take a field of a form.

        Args:
            name: Its name.
            field: What the form says of it.
            required: Whether the form wants a value.
        """
        self.name = name
        self.shown_name = printable(name, 100)
        self.required = required
        self._field: Mapping[str, Any] = field if isinstance(field, Mapping) else {}
        self._kind = self._field.get("type")
        self._form = {"properties": {name: field}}
        self.default = forms.filled(self._form, None).get(name, UNSET)
        self._choices = self._chosen_from()
        self.hidden = self._kind == "string" and not self._choices and self._is_secret()

    # -- how it is put ---------------------------------------------------------------------

    def lines(self) -> list[str]:
        """Return what is shown above the prompt."""
        title = self._text("title", 200)
        name = f"{self.shown_name} – {title}" if title not in ("", self.name) else self.shown_name
        found = [f"{name} ({self._wanted()})", *self._description()]
        for number, (value, title) in enumerate(self._choices[:_MOST_CHOICES], 1):
            said = self._said(value)
            found.append(f"  {number:>3}  {f'{title} ({said})' if title != said else said}")
        if more := len(self._choices) - _MOST_CHOICES:
            if more > 0:
                found.append(f"       … and {more} more")
        return found

    def prompt(self, kept: object) -> str:
        """Return the prompt; in brackets what an empty line means.

        Args:
            kept: The value that an empty line leaves, or ``UNSET``.
        """
        return (
            f"{self.shown_name}: " if kept is UNSET else f"{self.shown_name} [{self.said(kept)}]: "
        )

    def said(self, value: object) -> str:
        """Return a value as it may be shown, or what stands for one that was left out."""
        if value is UNSET:
            return "(left out)"
        if self.hidden:
            return "(hidden)"
        if isinstance(value, list | tuple):
            return ", ".join(map(self._titled, value)) or "(none)"
        return self._titled(value) or '""'

    # -- what the answer means -------------------------------------------------------------

    def value(self, line: str, kept: object) -> object:
        """Return the value that a line means; ``UNSET`` leaves the field out.

        Args:
            line: What the person typed.
            kept: The value that an empty line leaves, or ``UNSET``.

        Raises:
            Unfit: It means none, or one that does not fit the form.
        """
        text = line if self.hidden else line.strip()
        if not text:
            if kept is UNSET and self.required:
                raise Unfit(f"it is required; {_EMPTY} is an empty one")
            return kept
        value = self._meant(text)
        if wrong := forms.problems(self._form, {self.name: value}):
            raise Unfit(wrong[0])
        return value

    def _meant(self, text: str) -> object:
        match self._kind:
            case "array":
                return [] if text == _EMPTY else self._several(text)
            case _ if self._choices:
                return self._one(text)
            case "boolean":
                if (found := _YES_OR_NO.get(text.lower())) is None:
                    raise Unfit("say yes or no")
                return found
            case "integer" if _WHOLE.fullmatch(text):
                return int(text)
            case "integer" | "number":
                if not _NUMBER.fullmatch(text):
                    raise Unfit(f"say {self._wanted()}")
                return int(text) if _WHOLE.fullmatch(text) else float(text)
            case _:
                return "" if text == _EMPTY else text

    def _one(self, text: str) -> object:
        place = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if 1 <= place <= len(self._choices):
            return self._choices[place - 1][0]
        for alike in (str, str.casefold):
            found = [
                value
                for value, title in self._choices
                if alike(text) in (alike(self._raw(value)), alike(title))
            ]
            if len(found) == 1:
                return found[0]
        raise Unfit(f"say a number from 1 to {len(self._choices)}")

    def _several(self, text: str) -> list[object]:
        if not self._choices:
            return [part.strip() for part in text.split(",") if part.strip()]
        parts = re.split(r"[,\s]+", text.strip(", "))
        if not all(part.isdigit() for part in parts):
            parts = [part.strip() for part in text.split(",") if part.strip()]
        return list(dict.fromkeys(map(self._one, parts)))

    # -- what the form says ----------------------------------------------------------------

    def _chosen_from(self) -> list[tuple[Any, str]]:
        """Return the values to choose from, and what each is called; none if any will do."""
        part = self._field.get("items") if self._kind == "array" else self._field
        if not isinstance(part, Mapping) or (values := forms.choices(part)) is None:
            return []
        titles: Sequence[object] = ()
        if isinstance(part.get("enum"), list | tuple):
            named = part.get("enumNames")
            titles = named if isinstance(named, list | tuple) else ()
        else:
            titles = [one.get("title") for one in part.get("oneOf") or part.get("anyOf") or ()]
        found = []
        for place, value in enumerate(values):
            if isinstance(value, str | bool) or _is_shown(value):
                title = titles[place] if place < len(titles) else None
                shown = printable(title, 200) if isinstance(title, str) else ""
                found.append((value, shown or self._said(value)))
        return found

    def _wanted(self) -> str:
        """Return what kind of value is wanted, in words."""
        field = self._field
        if self._choices:
            what = "any of these, such as 1,2" if self._kind == "array" else "one of these"
            bounds = _between(field, "minItems", "maxItems", " choices")
        elif self._kind == "array":
            what, bounds = "texts, with commas between", ""
        elif self._kind in ("integer", "number"):
            what = "a whole number" if self._kind == "integer" else "a number"
            bounds = _between(field, "minimum", "maximum", "")
        elif self._kind == "boolean":
            what, bounds = "yes or no", ""
        else:
            known = field.get("format")
            what = (
                forms.FORMATS[known][0]
                if isinstance(known, str) and known in forms.FORMATS
                else "text"
            )
            bounds = _between(field, "minLength", "maxLength", " characters")
        optional = "" if self.required or self.default is not UNSET else ", optional"
        return f"{what}{bounds}{optional}"

    def _description(self) -> list[str]:
        said = self._field.get("description")
        if not isinstance(said, str) or not said.strip():
            return []
        lines = [f"  {printable(line, 500)}" for line in said[:4000].strip().split("\n")]
        return lines if len(lines) <= _MOST_LINES else [*lines[:_MOST_LINES], "  …"]

    def _is_secret(self) -> bool:
        if self._field.get("format") == "password" or self._field.get("writeOnly") is True:
            return True
        title = self._field.get("title")
        names = (self.name, title if isinstance(title, str) else "")
        return any(
            _SECRET.search(_SPACED.sub(" ", name[:200])) or _SECRET.search(name[:200])
            for name in names
        )

    def _text(self, member: str, limit: int) -> str:
        found = self._field.get(member)
        return printable(found.strip(), limit) if isinstance(found, str) else ""

    def _titled(self, value: object) -> str:
        for known, title in self._choices:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return title
        return self._said(value)

    def _said(self, value: object) -> str:
        return printable(self._raw(value), 200)

    @staticmethod
    def _raw(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return str(value)


def _between(field: Mapping[str, Any], least: str, most: str, unit: str) -> str:
    low, high = (
        f"{bound:g}" if _is_shown(bound := field.get(name)) else "" for name in (least, most)
    )
    if low and high:
        return f" from {low} to {high}{unit}" if low != high else f", {low}{unit}"
    if low or high:
        return f", at {f'least {low}' if low else f'most {high}'}{unit}"
    return ""


def _is_shown(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number that people would write out."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
