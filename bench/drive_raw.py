"""The floor: the same pipes and the same server with nothing between, printed as one JSON line.

Blocking reads and writes, JSON both ways (an envelope, then its result), no loop, no time-outs, no
answer to anything the server might ask.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import msgspec

from bench.probe import Figures, Order, begin, flow_figures, latency_figures, median, peak_kb, tell

TEXT = "0123456789" * 10
WINDOW = 100
CHUNK = 65536
MIB = 1024 * 1024


class Request(msgspec.Struct, gc=False):
    jsonrpc: str
    id: int
    method: str
    params: dict[str, Any]


class Reply(msgspec.Struct, gc=False):
    id: int
    result: msgspec.Raw


class Text(msgspec.Struct, gc=False):
    text: str


class EchoResult(msgspec.Struct, gc=False):
    content: list[Text]


class ReadResult(msgspec.Struct, gc=False):
    contents: list[Text]


class Page(msgspec.Struct, gc=False):
    tools: list[dict[str, Any]]
    nextCursor: str | None = None


encode = msgspec.json.Encoder().encode
decode_reply = msgspec.json.Decoder(Reply).decode
decode_echo = msgspec.json.Decoder(EchoResult).decode
decode_read = msgspec.json.Decoder(ReadResult).decode
decode_page = msgspec.json.Decoder(Page).decode


class Wire:
    """One server and its two pipes."""

    def __init__(self, server: list[str]) -> None:
        self.process = subprocess.Popen(
            server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.into, self.out = self.stdin.fileno(), self.stdout.fileno()
        self.last = 0

    def write(self, data: bytes) -> None:
        sent = os.write(self.into, data)
        while sent < len(data):
            data = data[sent:]
            sent = os.write(self.into, data)

    def line(self) -> bytes:
        """Read one line; only ever called with one answer outstanding, so nothing follows it."""
        chunk = os.read(self.out, CHUNK)
        if chunk[-1:] == b"\n":
            return chunk
        chunks = [chunk]
        while chunk[-1:] != b"\n":
            chunk = os.read(self.out, CHUNK)
            if not chunk:
                raise EOFError("the server has gone")
            chunks.append(chunk)
        return b"".join(chunks)

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        self.last += 1
        return encode(Request("2.0", self.last, method, params)) + b"\n"

    def ask(self, method: str, params: dict[str, Any]) -> msgspec.Raw:
        self.write(self.request(method, params))
        reply = decode_reply(self.line())
        assert reply.id == self.last
        return reply.result

    def open(self) -> None:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.ask("initialize", {**hello, "clientInfo": {"name": "raw", "version": "0"}})
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def echo(self) -> str:
        params = {"name": "echo", "arguments": {"text": TEXT}}
        return decode_echo(self.ask("tools/call", params)).content[0].text

    def close(self) -> None:
        """Close the pipes; a server that does not take the hint within a second is killed."""
        self.stdin.close()
        self.stdout.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def sequential(wire: Wire, seconds: float) -> Figures:
    """Call after call, each timed."""
    echo, clock = wire.echo, time.perf_counter_ns
    end = clock() + int(seconds * 0.3e9)
    while clock() < end:
        echo()
    spans: list[int] = []
    cpu = time.process_time()
    start = before = clock()
    end = start + int(seconds * 1e9)
    while before < end:
        echo()
        now = clock()
        spans.append(now - before)
        before = now
    return latency_figures(spans, before - start, time.process_time() - cpu)


def window(wire: Wire, calls: int) -> float:
    """Keep a hundred calls in flight until so many are answered; each chunk read frees room."""
    params = {"name": "echo", "arguments": {"text": TEXT}}
    start = time.perf_counter()
    sent = answered = 0
    rest = b""
    room = WINDOW
    while answered < calls:
        batch = min(room, calls - sent)
        if batch:
            wire.write(b"".join([wire.request("tools/call", params) for _ in range(batch)]))
            sent += batch
        chunk = os.read(wire.out, CHUNK)
        if not chunk:
            raise EOFError("the server has gone")
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        for line in lines:
            decode_echo(decode_reply(line).result)
        room = len(lines)
        answered += room
    return time.perf_counter() - start


def in_flight(wire: Wire, seconds: float) -> Figures:
    """A hundred calls in flight for about that long."""
    window(wire, 1000)
    calls = max(1000, int(0.25 * seconds * 1000 / window(wire, 1000)))
    calls = max(1000, int(seconds * calls / window(wire, calls)))
    cpu = time.process_time()
    elapsed = window(wire, calls)
    return flow_figures(calls, elapsed, time.process_time() - cpu)


def reads(wire: Wire, repeat: int) -> Figures:
    """Read 1 and 10 MiB of text, some times each, after one read to warm up."""

    def read(size: int) -> str:
        return decode_read(wire.ask("resources/read", {"uri": f"bench://{size}"})).contents[0].text

    figures: Figures = {}
    for mib in (1, 10):
        assert len(read(mib * MIB)) == mib * MIB, "the text has another size"
        spans: list[float] = []
        for _ in range(repeat):
            start = time.perf_counter()
            read(mib * MIB)
            spans.append(time.perf_counter() - start)
        figures[f"mib{mib}_ms"] = median(spans) * 1e3
    return figures


def tools(wire: Wire, repeat: int) -> Figures:
    """List all tools, some times, after one list to warm up."""

    def count_tools() -> int:
        page = decode_page(wire.ask("tools/list", {}))
        count = len(page.tools)
        while page.nextCursor is not None:
            page = decode_page(wire.ask("tools/list", {"cursor": page.nextCursor}))
            count += len(page.tools)
        return count

    count = count_tools()
    assert count >= 1000, f"only {count} tools"
    spans: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        count_tools()
        spans.append(time.perf_counter() - start)
    return {"tools": count, "list_ms": median(spans) * 1e3}


def memory(wire: Wire) -> Figures:
    """Make one call and look how large this process has ever been."""
    assert wire.echo() == TEXT, "the echo came back changed"
    return {"peak_mb": peak_kb() / 1024}


def open_many(server: list[str], count: int) -> None:
    """In a process of its own: when told, start and open the servers; end when the input ends."""
    sys.stdin.readline()
    wires = [Wire(server) for _ in range(count)]
    for wire in wires:
        wire.open()
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.readline()
    for wire in wires:
        wire.close()


def fleet(order: Order) -> Figures:
    """The stall that is the machine's: an idle loop, while another process starts the servers."""
    import asyncio  # here and no higher: they would weigh in the peak memory

    from bench import workloads

    argv = [
        sys.executable,
        "-m",
        "bench.drive_raw",
        "open_many",
        f"count={order.count}",
        "--",
        *order.server,
    ]
    spawner = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert spawner.stdin is not None
    assert spawner.stdout is not None
    into, out = spawner.stdin, spawner.stdout
    time.sleep(0.2)  # its interpreter starts; not what is measured

    async def start() -> None:
        loop = asyncio.get_running_loop()
        opened = asyncio.Event()
        loop.add_reader(out.fileno(), opened.set)
        into.write(b"go\n")
        try:
            await opened.wait()
        finally:
            loop.remove_reader(out.fileno())

    try:
        elapsed, stall = asyncio.run(workloads.watched(start()))
    finally:
        into.close()
        spawner.wait()
        out.close()
    return {
        "servers": order.count,
        "start_s": elapsed,
        "stall_ms": stall.wall * 1e3,
        "stall_own_ms": stall.own * 1e3,
    }


def perform(order: Order) -> Figures:
    """Carry out one order; a name that is not known is a KeyError."""
    if order.name == "fleet":
        return fleet(order)
    wire = Wire(order.server)
    try:
        wire.open()
        match order.name:
            case "sequential":
                return sequential(wire, order.seconds)
            case "in_flight":
                return in_flight(wire, order.seconds)
            case "reads":
                return reads(wire, order.repeat)
            case "tools":
                return tools(wire, order.repeat)
            case "memory":
                return memory(wire)
            case name:
                raise KeyError(name)
    finally:
        wire.close()


if __name__ == "__main__":
    given = begin(sys.argv[1:])
    if given.name == "open_many":
        open_many(given.server, given.count)
    else:
        tell(perform(given))
