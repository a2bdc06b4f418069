"""Which socket a URL of newline frames names. Opens nothing and resolves no name."""

from __future__ import annotations

import re
from urllib.parse import unquote

from msgspec import Struct

_TCP = re.compile(r"(?:\[(?P<literal>[^\[\]@/]*)\]|(?P<name>[^\[\]@/:]*))(?::(?P<port>[^@/]*))?/?")


class Unix(Struct, frozen=True):
    """A socket in the file system.

    Attributes:
        path: Its absolute path.
    """

    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"


class Tcp(Struct, frozen=True):
    """A port of a host.

    Attributes:
        host: A name, or a literal address without brackets.
        port: From 1 to 65535.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return (
            f"tcp://[{self.host}]:{self.port}"
            if ":" in self.host
            else f"tcp://{self.host}:{self.port}"
        )


Address = Unix | Tcp


def address_of(url: str) -> Address | None:
    """Return the address that ``unix:///path`` or ``tcp://host:port`` names.

    What is percent-encoded is decoded. None is for any other scheme.

    Raises:
        ValueError: The URL names none; the text says what to write.
    """
    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    if not colon or scheme not in ("unix", "tcp"):
        return None
    # What is wrong with it may be a password in it, so no error shows the URL.
    if "?" in rest or "#" in rest:
        raise ValueError(
            f"a {scheme} url has no query and no fragment: write %3F for ? and %23 for #"
        )
    return _unix(rest) if scheme == "unix" else _tcp(rest)


def _unix(rest: str) -> Unix:
    if not rest.startswith("///"):
        raise ValueError(
            'a unix url is "unix://" and an absolute path, such as unix:///run/server.sock'
        )
    path = unquote(rest[2:])
    if "\0" in path or path.endswith("/"):
        raise ValueError("a unix url names a socket, not a folder, and holds no null character")
    return Unix(path)


def _tcp(rest: str) -> Tcp:
    if "@" in rest:
        raise ValueError(
            "a tcp url has no user and no password: newline frames have no place for them"
        )
    found = _TCP.fullmatch(rest.removeprefix("//")) if rest.startswith("//") else None
    host = unquote((found["literal"] or found["name"] or "") if found else "")
    if found is None or not host or not host.isprintable() or " " in host:
        raise ValueError(
            "a tcp url is tcp://host:port, an IPv6 address in brackets: tcp://[::1]:port"
        )
    port = found["port"] or ""
    if not (port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= 65535):
        raise ValueError(
            "a tcp url ends with its port, from 1 to 65535, such as tcp://localhost:4000"
        )
    return Tcp(host, int(port))
