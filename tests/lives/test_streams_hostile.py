"""A hostile peer on a socket costs its own call and its own life, nothing else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

import pytest

from mcpclient import (
    CallTimedOut,
    Limits,
    Manager,
    ServerDied,
    Timeouts,
)
from tests.conftest import eventually
from tests.lives.streams import GONE, at
from tests.relays import Listener

INITIALIZED = (
    b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
    b'"serverInfo":{"name":"cut","version":"1"}}}\n'
)
ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xc3\xa9"}]}}\n'


class Cutting:
    """A peer that cuts one answer after another at the next byte, and hangs up.

    Each connection is served to the first call, whose answer is cut; from the end of the answer on
    it is served whole.
    """

    def __init__(self, listener: Listener, opening: bool) -> None:
        self._listener = listener
        self._opening = opening
        self.cuts = 0
        self._over = False
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def end(self) -> None:
        self._over = True
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(self._listener.path)
        self._thread.join(20)

    def _serve(self) -> None:
        while True:
            taken = self._listener.take()
            if self._over:
                return
            with taken, taken.makefile("rb") as lines:
                for line in lines:
                    if not self._answer(taken, line):
                        break

    def _answer(self, taken: socket.socket, line: bytes) -> bool:
        """Answer a line; return whether to go on."""
        id = int(line.split(b'"id":')[1].split(b",")[0]) if b'"id":' in line else 0
        opening = b'"initialize"' in line
        if not opening and b'"tools/call"' not in line:
            return True
        answer = (INITIALIZED if opening else ANSWER) % id
        if opening is not self._opening or self.cuts > len(answer):
            taken.sendall(answer)
            return True
        try:
            taken.sendall(answer[: self.cuts])
        finally:
            self.cuts += 1
        return False


@pytest.mark.parametrize("opening", [False, True], ids=["an answer", "the opening"])
async def test_a_peer_that_cuts_at_any_byte_costs_its_call_alone(
    listen: Callable[..., Listener], opening: bool
) -> None:
    listener = listen("unix")
    peer = Cutting(listener, opening)
    spec = at(listener.url, era="handshake", limits=Limits(incidents=1000))
    whole = 0
    try:
        async with Manager({"cut": spec}) as manager:
            server = manager["cut"]
            while whole < 3:
                before = peer.cuts
                maybe_done: bool | None = None
                try:
                    result = await server.invoke_tool("echo", {}, timeout=20)
                except ServerDied as problem:
                    maybe_done = problem.maybe_done
                else:
                    assert result.text == "café"
                    whole += 1
                # One that the peer never read may have been written or not.
                assert opening or maybe_done is not False or peer.cuts == before
            # Without its line end, and with it but nothing after, an answer counts all the same.
            assert peer.cuts >= 80
            found = server.incidents
            assert len(found) == peer.cuts
            assert {one.phase for one in found} <= {"opening" if opening else "up", "up"}
            assert all(" the connection broke" in str(one) or GONE in str(one) for one in found)
    finally:
        peer.end()


async def test_a_peer_that_sends_rubbish_hurts_nobody(listen: Callable[..., Listener]) -> None:
    listener = listen("tcp")
    spec = at(
        listener.url, timeouts=Timeouts(open=0.5, probe=0.2, eof=0.1), limits=Limits(frame=10_000)
    )

    def rubbish() -> None:
        taken = listener.take()
        try:
            for number in range(300):
                taken.sendall(os.urandom(number * 10) + b"\n{" + b"[" * number + b"\n\0\n" * 3)
            taken.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" + b"x" * 50_000)
        except OSError:
            pass

    thread = threading.Thread(target=rubbish)
    thread.start()
    async with Manager({"one": spec}) as manager:
        with pytest.raises(CallTimedOut):
            await manager["one"].start(timeout=0.3)
        await eventually(lambda: manager["one"].incidents)
        assert "the server did not open within 500 ms" in manager["one"].incidents[0].problem
    thread.join(20)
