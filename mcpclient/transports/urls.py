"""Which endpoint an http or https URL names, and what of it may be shown. Opens nothing.

A path is taken to the letter: a slash more or less is another endpoint. Names and passwords,
queries and long parts of a path may be secrets, so what is shown has none of them.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import quote, unquote, urljoin, urlsplit

from msgspec import Struct

from mcpclient.ground.text import printable

SCHEMES = ("http", "https", "unix", "tcp")
USUAL_PORTS = {"http": 80, "https": 443}
# What a path and a query may hold besides letters and digits; a per cent sign is one already.
_SAFE = "/%:@!$&'()*+,;=-._~?[]|"
# A part of a path this long is more often a key than a word.
_LONG = 20
_HOST = re.compile(r"[A-Za-z0-9._-]+")
# Letters that the rules of 2003 and of 2008 write in different ways: two hosts, and perhaps owners.
_TWO_WAYS = re.compile("[ßς]")


class HttpUrl(Struct, frozen=True):
    """One endpoint.

    Attributes:
        scheme: ``http`` or ``https``.
        host: A name in ASCII, or a literal address without brackets.
        port: Its number, also if it is the usual one.
        target: The path with its query, percent-encoded, at least ``/``.
        login: The value of ``Authorization`` that a name and password in the URL mean, or "".
    """

    scheme: str
    host: str
    port: int
    target: str
    login: str = ""

    @property
    def authority(self) -> str:
        """The value of ``Host``: without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == USUAL_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: whom credentials belong to."""
        return f"{self.scheme}://{self.authority}"

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def __str__(self) -> str:
        parts = ["…" if len(part) >= _LONG else part for part in self.path.split("/")]
        query = "?…" if "?" in self.target else ""
        return printable(f"{self.origin}{'/'.join(parts)}{query}", 200)

    def joined(self, location: str) -> HttpUrl | None:
        """Return where a redirect from here leads, or None if it is no http or https URL."""
        try:
            found = http_url(urljoin(f"{self.origin}{self.target}", location.strip()))
        except ValueError:
            return None
        if found is None or found.origin != self.origin:
            return found
        return HttpUrl(found.scheme, found.host, found.port, found.target, self.login)


def http_url(text: str) -> HttpUrl | None:
    """Return what an http or https URL names; None is for any other scheme.

    Raises:
        ValueError: It names nothing; the text says what to write and does not show the URL.
    """
    scheme = text.partition(":")[0].lower()
    if scheme not in USUAL_PORTS:
        return None
    wanted = f"an {scheme} url is such as {scheme}://host:8000/mcp"
    if not text.isprintable() or " " in text:
        raise ValueError(f"{wanted}: blanks and controls in it are percent-encoded")
    try:
        parts = urlsplit(text)
        port = parts.port
        host = parts.hostname or ""
        # By the rules of names; a literal address passes through.
        name = host if ":" in host else host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        raise ValueError(f"{wanted}: its host or port cannot be read") from None
    if _TWO_WAYS.search(host):
        raise ValueError(f"{wanted}: write its host in ASCII, as xn--…, so that it is clear which")
    if not parts.netloc or not name or (":" not in name and not _HOST.fullmatch(name)) or port == 0:
        raise ValueError(f"{wanted}: its host or port cannot be read")
    login = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        login = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
    target = quote(parts.path or "/", safe=_SAFE)
    if parts.query:
        target += "?" + quote(parts.query, safe=_SAFE)
    return HttpUrl(scheme, name, port or USUAL_PORTS[scheme], target, login)


def shown(text: str) -> str:
    """Return what may be shown of a URL of any scheme, legal or not."""
    try:
        found = http_url(text)
    except ValueError:
        found = None
    if found is not None:
        return str(found)
    scheme, colon, rest = text.partition(":")
    if not colon or scheme.lower() not in SCHEMES[2:] or "@" in rest:
        return "…"
    return printable(text.partition("?")[0], 200)
