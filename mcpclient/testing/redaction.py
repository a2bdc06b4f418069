"""What a recording must not hold, and when a value that lacks it is the same as one that has it.

By the names of members, by the values of secret variables, and by patterns. What was taken out
stands as ``***`` and, when a recording is compared, means anything.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcpclient.transports.logs import hidden, is_secret, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MASK = "***"
HOME = "${HOME}"
# A member of the protocol itself, which only sounds like a secret.
_HARMLESS = frozenset({"progressToken"})
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
# More names of secrets than logs mask, since a recording is kept, and given to others.
_NAMES = re.compile(
    r"(?i)passphrase|\bpwd\b|\bauth\b|(?:private|access|secret|signing|encryption)[-_]?key"
)
# What stands in an address, or in the output of env: the part that is kept, then the secret.
_PLACES = (
    re.compile(r"(\w://[^\s/:@\"']*:)[^\s/@\"']+(?=@)"),
    re.compile(
        r"(?i)([?&#;](?:[\w.-]*(?:token|secret|passw|api[-_]?key|credential|signature)[\w.-]*"
        r"|key|sig|pwd|auth)=)[^\s&#\"'<>]+"
    ),
    re.compile(
        r"\b([A-Z0-9_]*(?:TOKEN|SECRET|PASSW|PASSPHRASE|_KEY|APIKEY|CREDENTIAL)[A-Z0-9_]*=)"
        r"[^\s\"'\\]+"
    ),
)
# Secrets that say by their shape what they are: of GitHub, OpenAI and Anthropic, Slack, AWS; JWTs;
# private keys.
_SHAPES = re.compile(
    r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{20,}|\bsk-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# By these a mapping below a secret's name is known as the schema of a secret.
_OF_SCHEMAS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


class Redaction:
    """Takes out of messages what is secret.

    Attributes:
        patterns: The regular expressions whose matches are taken out.
        home: Whether paths of the home directory are written as ``${HOME}``.
    """

    def __init__(
        self,
        patterns: Iterable[str] = (),
        *,
        home: bool = False,
        custom: Callable[[Any], Any] | None = None,
        env: Mapping[str, str] = {},
    ) -> None:
        """Prepare.

        Args:
            patterns: As above.
            home: As above.
            custom: Called with each message, after all else; returns what is to be written.
            env: Variables; the values of those that are named like a secret are taken out.

        Raises:
            re.error: A pattern is none.
        """
        self.patterns = list(patterns)
        self.home = home
        self._compiled = [re.compile(one) for one in self.patterns]
        self._custom = custom
        forms = {form for value in hidden(env) for form in _forms(value)}
        self._hidden = sorted(forms, key=len, reverse=True)
        self._place = str(Path.home()) if home else ""

    def knowing(self, env: Mapping[str, str]) -> Redaction:
        """Return the same, with these variables."""
        return Redaction(self.patterns, home=self.home, custom=self._custom, env=env)

    def message(self, message: Any) -> Any:
        """Return a message without its secrets. The message itself is not changed."""
        found = self._clean(message, secret=False)
        return found if self._custom is None else self._custom(found)

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        for value in self._hidden:
            text = text.replace(value, MASK)
        text = _BEARER.sub(rf"\1 {MASK}", text)
        text = _SHAPES.sub(MASK, text)
        for place in _PLACES:
            text = place.sub(rf"\1{MASK}", text)
        if '"' in text:  # it may hold JSON
            text = masked(text)
        for pattern in self._compiled:
            text = pattern.sub(MASK, text)
        return self.placed(text)

    def placed(self, text: str) -> str:
        """Return a text with the home directory written as it is in recordings."""
        return text.replace(self._place, HOME) if len(self._place) > 1 else text

    def here(self, value: Any) -> Any:
        """Return a recorded value with the home directory of whoever runs this."""
        if len(self._place) <= 1:
            return value
        return _mapped(value, lambda text: text.replace(HOME, self._place))

    def _clean(self, value: Any, *, secret: bool) -> Any:
        if isinstance(value, str):
            return MASK if secret else self.text(value)
        if isinstance(value, list):
            return [self._clean(one, secret=secret) for one in value]
        if isinstance(value, dict):
            within = secret and not _is_schema(value)
            return {
                self.text(name): self._clean(one, secret=within or _names_secret(name))
                for name, one in value.items()
            }
        return value


def _names_secret(name: str) -> bool:
    return name not in _HARMLESS and (is_secret(name) or _NAMES.search(name) is not None)


def _is_schema(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, list) or kind in _TYPES or not _OF_SCHEMAS.isdisjoint(value)


def _forms(value: str) -> Iterable[str]:
    """Yield how a secret may be written: as it is, in an address, in JSON in a text, in Base64."""
    yield value
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    if isinstance(value, dict):
        return {change(name): _mapped(one, change) for name, one in value.items()}
    return value


def difference(recorded: Any, got: Any, ignore: Iterable[str] = (), place: str = "") -> str | None:
    """Return where a value first differs from a recorded one, as a sentence, or None.

    Args:
        recorded: What stands in the recording; ``***`` in it means anything.
        got: The other value.
        ignore: Dotted paths of members that do not count.
        place: The path of these values.
    """
    if place in ignore:
        return None
    if isinstance(recorded, dict) and isinstance(got, dict):
        for name in (*recorded, *(name for name in got if name not in recorded)):
            below = f"{place}.{name}" if place else name
            if below in ignore:
                continue
            if name not in got:
                return f"{below} is missing; recorded was {_shown(recorded[name])}"
            if name not in recorded:
                return f"{below} = {_shown(got[name])} was not there in the recording"
            if found := difference(recorded[name], got[name], ignore, below):
                return found
        return None
    if isinstance(recorded, list) and isinstance(got, list):
        if len(recorded) != len(got):
            return f"{place or 'it'} has {len(got)} items; recorded were {len(recorded)}"
        for number, (one, other) in enumerate(zip(recorded, got, strict=True)):
            if found := difference(one, other, ignore, f"{place}[{number}]"):
                return found
        return None
    if isinstance(recorded, str) and isinstance(got, str) and MASK in recorded:
        parts = map(re.escape, recorded.split(MASK))
        if re.fullmatch(".*".join(parts), got, re.DOTALL):
            return None
    elif type(recorded) is bool or type(got) is bool:
        if recorded is got:
            return None
    elif recorded == got:
        return None
    return f"{place or 'it'} is {_shown(got)}; recorded was {_shown(recorded)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
