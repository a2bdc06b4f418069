"""From an address to a connected socket that never blocks. Has never read or written a byte.

A host may have several addresses. The next one is tried as soon as one fails, or after a moment of
silence, and whichever answers first is taken: a host that listens on one family only, or is
reachable by one only, costs no more than that moment.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from mcpclient.ground.errors import OpeningFailed
from mcpclient.transports.addresses import Tcp, Unix

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.loops.base import Loop
    from mcpclient.transports.addresses import Address

# How long one address may be silent before the next one is tried too (RFC 8305, section 5).
_HEAD_START = 0.25
# How soon to ask again a local server whose queue of connections is full: nothing tells of room.
_FULL = 0.05
# An idle connection is asked for a sign of life after a minute, and given up a minute later.
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
# What only says that this machine has no such network says nothing of the server.
_NOT_HERE = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
# A machine that is too full says nothing of the server either, and may have room again soon.
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LIMITS = "close what is not needed, or raise the limits of this user"
_START = 'start the server, or correct "url"'

# A family, and what connect takes there.
Target = tuple[int, Any]


async def connect(address: Address, loop: Loop) -> socket.socket:
    """Return a connected, non-blocking socket. The caller bounds the time.

    Cancelling it leaves no socket behind; a name that is being resolved is left to its thread.

    Raises:
        OpeningFailed: Nobody listens there, it may not be entered, or the name is not known.
    """
    if sys.platform == "win32":
        raise OpeningFailed(
            f"{address}: sockets are not supported on Windows yet; let the server speak HTTP",
            final=True,
        )
    if isinstance(address, Unix):
        return await _connect_unix(address, loop)
    problems: list[OSError] = []
    sock = await _first(await _resolved(address), loop, problems)
    if sock is None:
        raise _unreached(address, problems)
    return sock


async def _connect_unix(address: Unix, loop: Loop) -> socket.socket:
    try:
        return await _connected((socket.AF_UNIX, address.path), loop)
    except OSError as problem:
        raise _unopened(address, problem) from problem


async def _resolved(address: Tcp) -> list[Target]:
    """Return the addresses of a host, the families by turns; numbers need no look-up."""

    def look_up(flags: int) -> list[Target]:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=flags)
        return [(family, target) for family, _, _, _, target in found]

    try:
        try:
            targets = look_up(socket.AI_NUMERICHOST)
        except socket.gaierror:
            # It may hang for as long as the system likes: the thread is not waited for.
            targets = await to_thread.run_sync(look_up, 0, abandon_on_cancel=True)
    except socket.gaierror as problem:
        raise _unresolved(address, problem) from problem
    except UnicodeError as problem:
        raise OpeningFailed(
            f'{address.host!r} cannot be the name of a host; correct "url"', final=True
        ) from problem
    return list(by_turns(targets))


def by_turns(targets: list[Target]) -> Iterable[Target]:
    """Yield the targets so that no two of a family come in a row while there are others."""
    first = [one for one in targets if one[0] == targets[0][0]]
    others = [one for one in targets if one[0] != targets[0][0]]
    for place in range(max(len(first), len(others))):
        yield from first[place : place + 1]
        yield from others[place : place + 1]


async def _first(
    targets: list[Target], loop: Loop, problems: list[OSError]
) -> socket.socket | None:
    """Return the socket that is connected first, or None and what was wrong with each."""
    won: list[socket.socket] = []

    async def attempt(target: Target, failed: anyio.Event) -> None:
        try:
            sock = await _connected(target, loop)
        except OSError as problem:
            problems.append(problem)
            failed.set()
        else:
            if won:  # both in the same turn of the loop
                sock.close()
            else:
                won.append(sock)
                group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            for target in targets:
                failed = anyio.Event()
                group.start_soon(attempt, target, failed)
                with anyio.move_on_after(_HEAD_START):
                    await failed.wait()
    except BaseException:  # a cancellation, while a socket was won
        for sock in won:
            sock.close()
        raise
    return won[0] if won else None


async def _connected(target: Target, loop: Loop) -> socket.socket:
    """Return a socket connected to one target, or raise OSError."""
    family, address = target
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if family != socket.AF_UNIX:
            _tune(sock)
        code = sock.connect_ex(address)
        while code == errno.EAGAIN:
            await anyio.sleep(_FULL)
            code = sock.connect_ex(address)
        if code == errno.EINPROGRESS:
            await _writable(sock.fileno(), loop)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if not code and is_itself(sock):
            code = errno.ECONNREFUSED
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:  # a cancellation above all
        sock.close()
        raise
    return sock


def _tune(sock: socket.socket) -> None:
    # A frame is written whole: to wait for more to send with it only costs time.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def is_itself(sock: socket.socket) -> bool:
    """Return whether a socket is connected to itself.

    That is what comes of calling a port of this machine on which nobody listens, if the system
    happens to choose that very port for this end.
    """
    if sock.family == socket.AF_UNIX:
        return False
    try:
        return bool(sock.getsockname() == sock.getpeername())
    except OSError:
        return False  # the server has hung up already; who reads will see


async def _writable(fd: int, loop: Loop) -> None:
    waiter = loop.waiter()
    watch = loop.writable(fd, lambda: None if waiter.done() else waiter.set_result(None))
    try:
        await waiter
    finally:
        watch.cancel()


# -- what went wrong -----------------------------------------------------------------------


def _unopened(address: Unix, problem: OSError) -> OpeningFailed:
    path = address.path
    final = False
    match problem.errno:
        case errno.ENOENT:
            text = f"there is no socket at {path!r}; {_START}"
        case errno.ECONNREFUSED if _is_socket(path):
            text = f"nobody listens at {path!r}: its server has ended; {_START}"
        case errno.ECONNREFUSED:
            text = f"{path!r} is no socket; {_START}"
        case errno.EACCES | errno.EPERM:
            text = f"{path!r} may not be used: check who may write to it and enter its folders"
        case errno.EPROTOTYPE:
            text = f'{path!r} is a socket of another kind than a stream; correct "url"'
        case code if code in _NO_ROOM:
            text = f"{path!r} cannot be connected to: {problem.strerror}; {_LIMITS}"
        case None:  # Python's own: it does not fit into the system's structure
            text = f"the path {path!r} is too long for a socket; use a shorter one, or a link to it"
            final = True
        case _:
            text = f"{path!r} cannot be connected to: {problem.strerror}"
    return OpeningFailed(text, final=final)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return True  # it vanished meanwhile: it was one


def _unresolved(address: Tcp, problem: socket.gaierror) -> OpeningFailed:
    if problem.errno == socket.EAI_AGAIN:
        text = f"the name {address.host!r} cannot be resolved now; check the network"
    elif problem.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)):
        text = f'there is no host {address.host!r}; correct "url", or check the network'
    else:
        text = f"the name {address.host!r} cannot be resolved: {problem.strerror}"
    return OpeningFailed(text)


def _unreached(address: Tcp, problems: list[OSError]) -> OpeningFailed:
    # One address refuses, the other is of a network that is not there: the first says more.
    told = [one for one in problems if one.errno not in _NOT_HERE] or problems
    problem = next((one for one in told if one.errno == errno.ECONNREFUSED), told[0])
    if problem.errno == errno.ECONNREFUSED:
        text = f"nobody listens on {address}; {_START}"
    else:
        advice = _LIMITS if problem.errno in _NO_ROOM else 'check the network, or correct "url"'
        text = f"{address} cannot be reached: {problem.strerror}; {advice}"
    return OpeningFailed(text)
