"""URI templates read backwards: a URI in, the variables out. Knows no resource.

Levels 1 and 2 of RFC 6570: ``{v}`` (one segment's worth), ``{+v}`` (anything), ``{#v}`` (a
fragment).

https://www.rfc-editor.org/rfc/rfc6570
"""

from __future__ import annotations

import re

from mcpclient.ground.errors import ConfigError, LocalProtocolError

# A longer URI names nothing: matching takes time by its length.
_LONGEST = 8192
_EXPRESSION = re.compile(r"\{([+#]?)([A-Za-z0-9_.]+)\}")
_MATCHES = {"": r"([^/?#,]+)", "+": r"(.+)", "#": r"#(.*)"}
_TRIPLET = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


class UriTemplate:
    """One template, and which URIs are of it.

    Attributes:
        text: The template.
        variables: The names of its variables, in order.

    Raises:
        ConfigError: It is none, is of a level above 2, or cannot be read backwards.
    """

    __slots__ = ("_pattern", "text", "variables")

    def __init__(self, text: str) -> None:
        from mcpclient.protocol import templates  # not every server has any

        self.text = text
        try:
            names = templates.variables(text)
        except LocalProtocolError as problem:
            raise ConfigError(str(problem), key="uri_template") from None
        parts = _EXPRESSION.split(text)
        literals, self.variables = parts[::3], parts[2::3]
        doubled = {name for name in self.variables if self.variables.count(name) > 1}
        if doubled:
            raise ConfigError(
                f"{text!r} names the variable {min(doubled)!r} twice; a URI could not tell which",
                key="uri_template",
            )
        if any("{" in part for part in literals) or names != self.variables:
            raise ConfigError(
                f"{text!r}: only {{v}}, {{+v}} and {{#v}} are understood", key="uri_template"
            )
        if "" in literals[1:-1]:
            raise ConfigError(
                f"{text!r}: text must stand between two variables, or no URI tells where one ends",
                key="uri_template",
            )
        pattern = re.escape(literals[0])
        for sign, literal in zip(parts[1::3], literals[1:], strict=True):
            pattern += _MATCHES[sign] + re.escape(literal)
        self._pattern = re.compile(pattern, re.DOTALL)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables of a URI, percent-decoded, or None if it is not of this template."""
        if len(uri) > _LONGEST:
            return None
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return {
            name: unquoted(value)
            for name, value in zip(self.variables, found.groups(), strict=True)
        }


def unquoted(text: str) -> str:
    """Return a text with its triplets decoded; what is no UTF-8 becomes U+FFFD."""
    return _TRIPLET.sub(
        lambda found: bytes.fromhex(found.group().replace("%", "")).decode("utf-8", "replace"), text
    )


def covers(subscribed: str, uri: str) -> bool:
    """Return whether a URI is the one that was subscribed to, or below it."""
    return uri == subscribed or uri.startswith(f"{subscribed.rstrip('/')}/")
