"""A host with a loop of its own draws 60 frames a second while servers flood it with news.

Run it with ``python examples/tick_loop.py [SECONDS]``. Each frame takes what has come in one tick,
within its budget of 2 ms; what is left is taken in the next frame. At the end it says how long the
ticks took, what was delivered, and what was dropped because it came faster than anybody could read.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from mcpclient.handles import Handle, Manager, Server

FRAME = 1 / 60
IN_FLIGHT = 8
SERVER = Path(__file__).resolve().parent.parent / "fixtures" / "servers" / "good_handshake.py"
NEWS = "notifications/resources/updated"


class Host:
    """Keeps its servers busy, and takes what they say, once a frame."""

    def __init__(self, manager: Manager) -> None:
        self.answers = self.notices = self.frames = 0
        self.ticks: list[float] = []  # seconds by the clock
        self.costs: list[float] = []  # seconds of this thread's own work
        self.manager = manager
        manager.on_notification(NEWS, self.news)
        for name in manager:
            for _ in range(IN_FLIGHT):
                self.ask(manager[name])

    def ask(self, server: Server) -> None:
        """Have a server send a few hundred notices as fast as it can, again and again."""
        handle = server.invoke_tool("notify", {"n": 300, "uri": "test://a"})
        handle.add_done_callback(lambda handle: self.answered(server, handle))

    def answered(self, server: Server, handle: Handle[Any]) -> None:
        """Go on as soon as it is done."""
        if handle.exception() is None:
            self.answers += 1
            self.ask(server)

    def news(self, server: Server, params: Any) -> None:
        """Redraw something."""
        self.notices += 1

    def frame(self) -> None:
        """Take what has come; then draw."""
        begun, worked = time.perf_counter(), time.thread_time()
        self.manager.tick(max_items=None)  # the budget alone
        self.costs.append(time.thread_time() - worked)
        self.ticks.append(time.perf_counter() - begun)
        self.frames += 1


def main(seconds: float) -> None:
    """Run for so long."""
    command = [sys.executable, str(SERVER)]
    with Manager({f"flood{number}": command for number in range(4)}) as manager:
        for starting in [manager[name].start() for name in manager]:
            starting.result()
        # What has been loaded stays: the collector need not look at it in the midst of a frame.
        gc.freeze()
        host = Host(manager)
        end = due = time.monotonic()
        end += seconds
        while (now := time.monotonic()) < end:
            due = max(due + FRAME, now)
            time.sleep(due - now)
            host.frame()
        dropped = manager.tick(max_items=0).dropped
        dropped += sum(server.dropped for server in manager.status().servers)
    print(
        json.dumps(
            {
                "frames": host.frames,
                "answers": host.answers,
                "notices": host.notices,
                "dropped": dropped,
                "tick_ms_median": round(sorted(host.ticks)[host.frames // 2] * 1e3, 3),
                "tick_ms_worst": round(max(host.ticks) * 1e3, 3),
                "tick_ms_worst_own_work": round(max(host.costs) * 1e3, 3),
            }
        )
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
