"""A URL names one socket or none, and an error never shows what may be a password."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.transports.addresses import Tcp, Unix, address_of


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("unix:///run/server.sock", Unix("/run/server.sock")),
        ("UNIX:///a", Unix("/a")),
        ("unix:///with%20blank/100%25", Unix("/with blank/100%")),
        ("unix:///a:b@c", Unix("/a:b@c")),
        ("tcp://localhost:4000", Tcp("localhost", 4000)),
        ("TCP://127.0.0.1:65535/", Tcp("127.0.0.1", 65535)),
        ("tcp://[::1]:1", Tcp("::1", 1)),
        ("tcp://[fe80::1%25eth0]:80", Tcp("fe80::1%eth0", 80)),
        ("tcp://xn--nxasmq6b:80", Tcp("xn--nxasmq6b", 80)),
        ("http://localhost:80", None),
        ("stdio", None),
        ("", None),
        ("/run/server.sock", None),
    ],
)
def test_a_url_names_a_path_or_a_port(url: str, address: object) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("unix:/run/a", "such as unix:///run/server.sock"),
        ("unix://run/a", "such as unix:///run/server.sock"),
        ("unix://", "such as unix:///run/server.sock"),
        ("unix:///", "names a socket, not a folder"),
        ("unix:///run/", "names a socket, not a folder"),
        ("unix:///a%00b", "no null character"),
        ("unix:///a?b", "write %3F for ?"),
        ("tcp://localhost:1#x", "write %3F for ?"),
        ("tcp:localhost:4000", "tcp://host:port"),
        ("tcp://:4000", "tcp://host:port"),
        ("tcp://::1:4000", "in brackets: tcp://[::1]:port"),
        ("tcp://[::1]4000", "in brackets: tcp://[::1]:port"),
        ("tcp://a b:1", "tcp://host:port"),
        ("tcp://localhost:1/path", "tcp://host:port"),
        ("tcp://localhost", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:0", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:65536", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:+80", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:８０", "ends with its port, from 1 to 65535"),
        ("tcp://localhost:" + "9" * 5000, "ends with its port, from 1 to 65535"),
        ("tcp://user:secret@localhost:80", "has no user and no password"),
    ],
)
def test_what_names_none_is_told_what_to_write(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"a (unix|tcp) url") as caught:
        address_of(url)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["unix:///a b", "tcp://localhost:80", "tcp://[::1]:80"])
def test_an_address_is_shown_as_it_is_written(url: str) -> None:
    assert str(address_of(url)) == url


@given(st.sampled_from(["unix:", "unix:///", "tcp://", "tcp://[", "tcp://a:"]), st.text())
def test_rubbish_is_an_address_or_a_value_error(start: str, rest: str) -> None:
    try:
        address = address_of(start + rest)
    except ValueError:
        return
    assert isinstance(address, Unix | Tcp)
    if isinstance(address, Tcp):
        assert 1 <= address.port <= 65535
        assert address.host
    else:
        assert address.path.startswith("/")
