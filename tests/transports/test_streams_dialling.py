"""A socket is found, or an error says why not and what to do; nothing stays open on the way."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import Limits, OpeningFailed, loops
from mcpclient.transports import sockets, streams
from mcpclient.transports.streams import HUNG_UP, StreamTransport
from tests.conftest import descriptors, eventually
from tests.relays import Listener, listeners
from tests.transports.conftest import PATIENT
from tests.transports.sinks import Recorder, line

Listen = Callable[..., Listener]


@pytest.fixture
def listen() -> Iterator[Listen]:
    with listeners() as make:
        yield make


async def dial(url: str) -> StreamTransport:
    return await streams.dial(url, loop=loops.current(), timeouts=PATIENT, limits=Limits())


async def refused(url: str) -> OpeningFailed:
    """Return the error that dialling raises, and see that it leaves no descriptor."""
    before = set(descriptors())
    with pytest.raises(OpeningFailed) as caught:
        await dial(url)
    assert set(descriptors()) <= before
    return caught.value


def free_port() -> int:
    """Return a port on which nobody listens, for a while."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def there_and_back(transport: StreamTransport, far: socket.socket) -> None:
    """See that both directions carry frames, then hang up at the far end."""
    sink = Recorder()
    transport.start(sink)
    transport.send(line("hello"))
    assert await anyio.to_thread.run_sync(far.recv, 100) == b"hello\n"
    far.sendall(b"and back\n")
    far.close()
    assert await sink.gone_with() == (HUNG_UP, "")
    assert sink.frames == [b"and back"]


# -- it is there ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_a_server_that_listens_is_connected_to(listen: Listen, kind: str) -> None:
    listener = listen(kind)
    await there_and_back(await dial(listener.url), listener.take())


async def test_a_path_may_hold_what_a_url_must_encode() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        path = f"/tmp/ä %{os.getpid()}"
        listener.bind(path)
        listener.listen()
        try:
            transport = await dial(f"unix:///tmp/ä%20%25{os.getpid()}")
            far, _ = listener.accept()
        finally:
            os.unlink(path)
        await there_and_back(transport, far)


async def test_the_socket_of_a_port_sends_at_once_and_is_kept_alive(listen: Listen) -> None:
    transport = await dial(listen("tcp").url)
    sock = transport._sock
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
    assert not sock.get_inheritable()
    assert not sock.getblocking()
    transport.kill()


def loopbacks() -> list[str]:
    """Return the loopback addresses of this machine: one of each family that it has."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


@pytest.mark.parametrize("address", loopbacks())
async def test_a_name_leads_to_the_family_on_which_the_server_listens(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        port = listener.getsockname()[1]
        names(monkeypatch, ["::1", "127.0.0.1"], port)
        transport = await dial(f"tcp://localhost:{port}")
        far, _ = listener.accept()
        await there_and_back(transport, far)


def test_the_families_of_a_host_are_tried_by_turns() -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    found: list[sockets.Target] = [(six, 1), (six, 2), (six, 3), (four, 4)]
    assert [target for _, target in sockets.by_turns(found)] == [1, 4, 2, 3]
    assert [target for _, target in sockets.by_turns(found[::-1])] == [4, 3, 2, 1]
    assert list(sockets.by_turns([])) == []


async def test_an_address_that_is_silent_does_not_keep_the_others_waiting(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SilentPort()
    with silent:
        listener = listen("tcp")
        here = int(listener.url.rpartition(":")[2])
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", silent.address),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", here)),
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: found)
        begun = time.monotonic()
        transport = await dial("tcp://both.example:1")
        assert 0.2 < time.monotonic() - begun < 10
        await there_and_back(transport, listener.take())


class SilentPort:
    """A port that takes no connection and refuses none: its queue is full."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.address: Any = self._listener.getsockname()
        self._fill: list[socket.socket] = []

    def __enter__(self) -> None:
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(self.address)
            self._fill.append(one)
        time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        for one in (*self._fill, self._listener):
            one.close()


def names(monkeypatch: pytest.MonkeyPatch, addresses: list[str], port: int) -> None:
    """Let every name that is no number lead to these addresses."""
    real = socket.getaddrinfo

    def look_up(host: str, port: int, **options: Any) -> Any:
        if options.get("flags"):
            return real(host, port, **options)
        return [one for address in addresses for one in real(address, port, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


# -- it is not -----------------------------------------------------------------------------


async def test_a_path_at_which_nothing_is_says_so(tmp_path: Path) -> None:
    problem = await refused(f"unix://{tmp_path}/none")
    assert str(problem) == (
        f"there is no socket at '{tmp_path}/none'; start the server, or correct \"url\""
    )
    assert not problem.final, "it may come yet"


async def test_a_socket_whose_server_has_ended_says_so(listen: Listen) -> None:
    listener = listen("unix")
    listener.close()
    problem = await refused(listener.url)
    assert str(problem).startswith(f"nobody listens at '{listener.path}': its server has ended; ")
    assert not problem.final


async def test_a_file_that_is_no_socket_says_so(tmp_path: Path) -> None:
    for path in (tmp_path / "file", tmp_path / "folder"):
        path.mkdir() if path.name == "folder" else path.touch()
        problem = await refused(f"unix://{path}")
        assert str(problem).startswith(f"'{path}' is no socket; start the server, or correct")
        assert not problem.final


async def test_a_socket_of_another_kind_says_so(listen: Listen) -> None:
    folder = os.path.dirname(listen("unix").path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(f"{folder}/datagrams")
        problem = await refused(f"unix://{folder}/datagrams")
    assert "is a socket of another kind than a stream" in str(problem)


async def test_a_folder_that_is_none_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    problem = await refused(f"unix://{tmp_path}/file/socket")
    assert str(problem).endswith("/file/socket' cannot be connected to: Not a directory")


async def test_a_path_that_is_too_long_is_no_path_ever() -> None:
    problem = await refused("unix:///" + "long" * 100)
    assert "is too long for a socket; use a shorter one, or a link to it" in str(problem)
    assert problem.final


async def test_what_may_not_be_entered_says_so(
    listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, who may enter everything.
    class Forbidden(socket.socket):
        def connect_ex(self, address: Any, /) -> int:
            return 13

    url = listen("unix").url
    monkeypatch.setattr(socket, "socket", Forbidden)
    problem = await refused(url)
    assert "may not be used: check who may write to it and enter its folders" in str(problem)
    assert not problem.final


async def test_a_port_on_which_nobody_listens_says_so() -> None:
    port = free_port()
    problem = await refused(f"tcp://127.0.0.1:{port}")
    assert str(problem) == (
        f'nobody listens on tcp://127.0.0.1:{port}; start the server, or correct "url"'
    )
    assert not problem.final


async def test_of_several_addresses_the_one_that_refuses_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    # To the first one, which is everybody's, no stream ever leads.
    names(monkeypatch, ["255.255.255.255", "127.0.0.1"], port)
    problem = await refused(f"tcp://two.example:{port}")
    assert str(problem).startswith(f"nobody listens on tcp://two.example:{port};")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (socket.EAI_AGAIN, "the name 'a.example' cannot be resolved now; check the network"),
        (socket.EAI_NONAME, "there is no host 'a.example'; correct \"url\", or check the network"),
        (socket.EAI_FAIL, "the name 'a.example' cannot be resolved: broken"),
    ],
)
async def test_each_failure_of_a_name_has_its_words(
    code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise socket.gaierror(code, "broken")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert str(await refused("tcp://a.example:80")) == says


async def test_what_can_be_no_name_is_none_ever() -> None:
    problem = await refused("tcp://" + "x" * 64 + ".example:80")
    assert "cannot be the name of a host" in str(problem)
    assert problem.final


async def test_a_machine_without_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(socket.socket):
        def connect_ex(self, address: Any, /) -> int:
            return 24

    monkeypatch.setattr(socket, "socket", Full)
    for url in ("unix:///run/x", "tcp://127.0.0.1:1"):
        problem = await refused(url)
        assert "Too many open files; close what is not needed, or raise the limits" in str(problem)
        assert not problem.final


async def test_a_url_of_another_scheme_is_not_dialled_here() -> None:
    with pytest.raises(ValueError, match="unix:///path or tcp://host:port"):
        await dial("http://localhost:80")


def test_a_socket_that_called_itself_is_found_out() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.connect(sock.getsockname())
        assert sockets.is_itself(sock)
    near, far = socket.socketpair()
    with near, far:
        assert not sockets.is_itself(near)
    with socket.socket() as unconnected:
        assert not sockets.is_itself(unconnected)


# -- it does not answer --------------------------------------------------------------------


async def test_a_local_server_that_is_too_busy_to_take_it_is_asked_again(listen: Listen) -> None:
    listener = listen("unix", backlog=0)
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(listener.path)  # its queue is full now
        async with anyio.create_task_group() as group:
            found: list[StreamTransport] = []

            async def connect() -> None:
                found.append(await dial(listener.url))

            group.start_soon(connect)
            await anyio.sleep(0.2)
            assert found == []
            listener.take()
            await eventually(lambda: found)
        await there_and_back(found[0], listener.take())


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_connecting_may_be_cancelled_and_leaves_nothing_open(
    listen: Listen, kind: str
) -> None:
    before = set(descriptors())
    if kind == "unix":
        listener = listen("unix", backlog=0)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(listener.path)
            await cancelled(listener.url)
        listener.close()
    else:
        silent = SilentPort()
        with silent:
            await cancelled(f"tcp://127.0.0.1:{silent.address[1]}")
    await eventually(lambda: set(descriptors()) <= before)


async def cancelled(url: str) -> None:
    held = set(descriptors())
    with anyio.move_on_after(0.1) as scope:
        await dial(url)
    assert scope.cancelled_caught
    assert set(descriptors()) <= held


@pytest.mark.parametrize("turns", range(8))
async def test_connecting_may_be_cancelled_at_any_turn(listen: Listen, turns: int) -> None:
    listener = listen("tcp")
    held = set(descriptors())
    found: list[StreamTransport] = []

    async def connect() -> None:
        found.append(await dial(listener.url))

    async with anyio.create_task_group() as group:
        group.start_soon(connect)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    for transport in found:
        transport.kill()
    assert set(descriptors()) <= held


async def test_a_name_that_takes_for_ever_to_resolve_may_be_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.getaddrinfo
    going = threading.Event()

    def slow(host: str, port: int, **options: Any) -> Any:
        if options.get("flags"):
            return real(host, port, **options)
        going.wait(20)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    begun = time.monotonic()
    with anyio.move_on_after(0.1) as scope:
        await dial("tcp://slow.example:80")
    going.set()
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 15
