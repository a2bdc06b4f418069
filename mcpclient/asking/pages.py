"""A page that a server wants a person to visit: what they must see before they agree.

Nothing is fetched here, and nothing opened.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from mcpclient.features import forms
from mcpclient.features.asks import Refuse

# A person is to read all of it before they agree.
_LONGEST = 4000
_NEAR = ("localhost", "127.0.0.1", "::1")
_BAD_PARAMS = -32602


class Page(NamedTuple):
    """What is told of a page.

    Attributes:
        url: The whole of its URL, in harmless characters.
        host: Where it leads.
        warnings: What is odd about it.
    """

    url: str
    host: str
    warnings: tuple[str, ...]


def page(url: object) -> Page:
    """Return what a person must see of a page before they agree to visit it.

    Raises:
        Refuse: It is no URL that may be opened: neither https nor http on this machine, or not
            written as URLs are, so that a browser might read another host in it than we do.
    """
    fits = forms.FORMATS["uri"][1]
    if not isinstance(url, str) or not fits(url):
        raise Refuse("the URL is malformed", code=_BAD_PARAMS)
    if len(url) > _LONGEST:
        raise Refuse(f"the URL has more than {_LONGEST} characters", code=_BAD_PARAMS)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Refuse("the URL is malformed", code=_BAD_PARAMS) from None
    near = host in _NEAR
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
        raise Refuse("only https pages are shown to a person", code=_BAD_PARAMS)
    warnings = []
    if parts.username is not None or parts.password is not None:
        warnings.append("what stands before the @ is a name to log in with, and no host")
    if any(label.startswith("xn--") for label in host.lower().split(".")):
        warnings.append("the host is written with foreign letters, and may look like another one")
    if host.replace(".", "").isdigit() or ":" in host:
        if not near:
            warnings.append("the host is a bare address")
    if near:
        warnings.append("the page is on this machine")
    return Page(url, host if port is None else f"{host}:{port}", tuple(warnings))
