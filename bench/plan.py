"""Which measurements there are, for whom, and how long each may take. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Who = Literal["raw", "ours", "sdk"]
Mode = Literal["pinned", "free"]

EVERYBODY: tuple[Who, ...] = ("raw", "ours", "sdk")
CLIENTS: tuple[Who, ...] = ("ours", "sdk")
BOTH: tuple[Mode, ...] = ("pinned", "free")
FREE: tuple[Mode, ...] = ("free",)

BENCH_SERVER = "fixtures/servers/bench_echo.py"
# Has a dozen tools. The SDK lists all tools before it accepts the first result of one: with the
# thousand tools of the other server its memory would look 10 MB worse than it is.
SMALL_SERVER = "fixtures/servers/good_handshake.py"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing to measure: rounds at most, seconds and repeats, each as (full, quick)."""

    name: str
    who: tuple[Who, ...]
    modes: tuple[Mode, ...]
    server: str = BENCH_SERVER
    rounds: tuple[int, int] = (99, 99)
    seconds: tuple[float, float] = (1.0, 0.3)
    repeat: tuple[int, int] = (5, 2)
    limit: float = 30.0  # seconds, then the driver is killed
    driver: str | None = None  # a module, {who} in it stands for the contestant; None: the usual


IMPORTS = "imports"
FACES = "bench.drive_faces"
WEB = "bench.drive_web_{who}"
WEB_SERVER = "fixtures/servers/http_echo.py"

PLAN = (
    Measurement("sequential", EVERYBODY, BOTH),
    Measurement("in_flight", EVERYBODY, BOTH),
    Measurement("reads", EVERYBODY, BOTH),
    Measurement("tools", EVERYBODY, BOTH, repeat=(15, 5)),
    Measurement("huge_line", ("ours",), BOTH),
    Measurement("memory", EVERYBODY, FREE, server=SMALL_SERVER, rounds=(3, 1)),
    Measurement(IMPORTS, CLIENTS, FREE, rounds=(3, 1), repeat=(5, 3)),
    Measurement("fleet", EVERYBODY, FREE, rounds=(3, 1)),
    Measurement("fleet_traced", CLIENTS, FREE, rounds=(1, 1)),
    Measurement("handle_call", ("ours",), BOTH, rounds=(3, 1), seconds=(2.0, 1.0), driver=FACES),
    Measurement("web_sequential", CLIENTS, BOTH, server=WEB_SERVER, driver=WEB),
    Measurement("web_in_flight", CLIENTS, FREE, server=WEB_SERVER, rounds=(3, 1), driver=WEB),
    Measurement("web_idle", ("ours",), FREE, server=WEB_SERVER, rounds=(3, 1), driver=WEB),
    Measurement("many_threads", ("ours",), FREE, rounds=(1, 1), seconds=(10.0, 2.0), driver=FACES),
)

SERVERS = 50
