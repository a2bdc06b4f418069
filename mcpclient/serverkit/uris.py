"""URI templates read backwards: a URI in, the variables out. Knows no resource.

Levels 1 and 2 of RFC 6570: ``{v}`` (one segment's worth), ``{+v}`` (anything), ``{#v}`` (a
fragment).

https://www.rfc-editor.org/rfc/rfc6570
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from mcpclient.ground.errors import ConfigError, LocalProtocolError

# A longer URI names nothing, and need not be remembered.
LONGEST = 8192
_EXPRESSION = re.compile(r"\{([+#]?)([A-Za-z0-9_.]+)\}")
# Where the value of a simple variable ends at the latest.
_STOP = re.compile(r"[/?#,]")
_TRIPLET = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


class UriTemplate:
    """One template, and which URIs are of it.

    Attributes:
        text: The template.
        variables: The names of its variables, in order.

    Raises:
        ConfigError: It is none, is of a level above 2, or cannot be read backwards.
    """

    __slots__ = ("_literals", "_signs", "text", "variables")

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
        self._literals, self._signs = literals, parts[1::3]

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the variables of a URI, percent-decoded, or None if it is not of this template."""
        first, *literals = self._literals
        if len(uri) > LONGEST or not uri.startswith(first):
            return None
        if not literals:
            return {} if uri == first else None
        stops = [stop.start() for stop in _STOP.finditer(uri)]
        ends = self._ends(uri, literals, stops)
        found: dict[str, str] = {}
        start = len(first)
        for place, (name, literal) in enumerate(zip(self.variables, literals, strict=True)):
            end = self._end(uri, place, start, ends[place], stops)
            if end is None:
                return None
            found[name] = unquoted(uri[start + (self._signs[place] == "#") : end])
            start = end + len(literal)
        return found

    def _ends(self, uri: str, literals: list[str], stops: list[int]) -> list[list[int]]:
        """Return where each variable may end so that all that follows fits: from the last one on.

        A regular expression would try all ways to divide the text, of which a hostile client can
        make as many as it likes.
        """
        last = len(uri) - len(literals[-1])
        ends = [[last] if uri.endswith(literals[-1]) else []]
        for place in range(len(literals) - 1, 0, -1):
            literal = literals[place - 1]
            fits: list[int] = []
            at = uri.find(literal)
            while at >= 0:
                if self._end(uri, place, at + len(literal), ends[0], stops) is not None:
                    fits.append(at)
                at = uri.find(literal, at + 1)
            ends.insert(0, fits)
        return ends

    def _end(
        self, uri: str, place: int, start: int, ends: list[int], stops: list[int]
    ) -> int | None:
        """Return the farthest end of a variable that starts somewhere, or None."""
        sign = self._signs[place]
        most = len(uri)
        if sign == "#" and not uri.startswith("#", start):
            return None
        if sign == "" and (stop := bisect_left(stops, start)) < len(stops):
            most = stops[stop]
        at = bisect_right(ends, most)
        return ends[at - 1] if at and ends[at - 1] > start else None


def unquoted(text: str) -> str:
    """Return a text with its triplets decoded; what is no UTF-8 becomes U+FFFD."""
    return _TRIPLET.sub(
        lambda found: bytes.fromhex(found.group().replace("%", "")).decode("utf-8", "replace"), text
    )


def covers(subscribed: str, uri: str) -> bool:
    """Return whether a URI is the one that was subscribed to, or below it."""
    return uri == subscribed or uri.startswith(f"{subscribed.rstrip('/')}/")
