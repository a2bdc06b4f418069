"""What the faces with a thread of their own cost: a handle's host, and many threads at once."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from bench.probe import Figures, Order, begin, flow_figures, quantile, tell
from mcpclient import blocking, handles

TEXT = "0123456789" * 10
# A host that calls once a frame and has other things to do between. Each call must wake the other
# thread, which has gone to sleep meanwhile; of many calls at once only the first would.
FRAME = 1 / 250
THREADS = 32
THREAD_SERVERS = 4


def handle_call(order: Order) -> Figures:
    """Time the host's thread in each call of a verb that returns a handle, and in each tick."""
    clock = time.perf_counter_ns
    calls: list[int] = []
    ticks: list[int] = []
    texts: list[str] = []
    with handles.Manager({"bench": order.server}) as manager:
        bench = manager["bench"]
        bench.start().result()
        end = time.monotonic() + order.seconds
        while time.monotonic() < end:
            start = clock()
            handle = bench.invoke_tool("echo", {"text": TEXT})
            calls.append(clock() - start)
            handle.add_done_callback(lambda handle: texts.append(handle.result().text))
            time.sleep(FRAME)
            start = clock()
            manager.tick()
            ticks.append(clock() - start)
        while len(texts) < len(calls):
            manager.tick()
    assert texts == [TEXT] * len(calls), "an echo came back changed"
    return {
        "calls": len(calls),
        "p50_us": quantile(sorted(calls), 0.50) / 1e3,
        "p99_us": quantile(sorted(calls), 0.99) / 1e3,
        "tick_p50_us": quantile(sorted(ticks), 0.50) / 1e3,
        "tick_max_ms": max(ticks) / 1e6,
    }


def many_threads(order: Order) -> Figures:
    """Let 32 threads call 4 servers by the blocking face, and look at every result."""
    counts = [0] * THREADS
    wrong: list[str] = []
    servers = {f"bench{number}": order.server for number in range(THREAD_SERVERS)}
    with blocking.Manager(servers) as manager:
        for name in manager:
            manager[name].start()
        start = time.perf_counter()
        cpu = time.process_time()
        end = time.monotonic() + order.seconds

        def caller(number: int) -> None:
            server = manager[f"bench{number % THREAD_SERVERS}"]
            while time.monotonic() < end:
                text = f"{number} {counts[number]} {TEXT}"
                answer = server.invoke_tool("echo", {"text": text}).text
                counts[number] += 1
                if answer != text:
                    wrong.append(f"{answer!r} for {text!r}")

        threads = [threading.Thread(target=caller, args=[number]) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed, used = time.perf_counter() - start, time.process_time() - cpu
    assert not wrong, f"{len(wrong)} wrong answers, such as {wrong[0]}"
    return {**flow_figures(sum(counts), elapsed, used), "fewest": min(counts), "most": max(counts)}


DRIVES: dict[str, Callable[[Order], Figures]] = {
    "handle_call": handle_call,
    "many_threads": many_threads,
}

if __name__ == "__main__":
    order = begin(sys.argv[1:])
    tell(DRIVES[order.name](order))
