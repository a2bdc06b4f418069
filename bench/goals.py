"""The speed that this project promises, as a list of bounds on medians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from bench.plan import BOTH, Mode
from bench.results import Results

Verdict = Literal["PASS", "under", "not measured"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One promise: a value, and on which side of the bound it must lie."""

    text: str
    value: float | None
    side: Literal["≥", "≤"]
    bound: float
    unit: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.value is None:
            return "not measured"
        kept = self.value >= self.bound if self.side == "≥" else self.value <= self.bound
        return "PASS" if kept else "under"

    def as_json(self) -> dict[str, Any]:
        return {
            "goal": self.text,
            "value": self.value,
            "bound": f"{self.side} {self.bound:g}{self.unit}",
            "verdict": self.verdict,
        }


def at_most(values: list[float | None]) -> float | None:
    """Give the largest of those that were measured."""
    return max((value for value in values if value is not None), default=None)


def goals(results: Results) -> list[Goal]:
    """Judge a run."""

    def rate(name: str, mode: Mode, to: Literal["raw", "sdk"]) -> float | None:
        return results.ratio(name, mode, "per_second", "ours", to)

    def faster(name: str, mode: Mode, figure: str) -> float | None:
        return results.ratio(name, mode, figure, "sdk", "ours")

    def ours(name: str, figure: str) -> Callable[[Mode], float | None]:
        return lambda mode: results.median(name, mode, "ours", figure)

    cpu, huge = ours("in_flight", "cpu_us"), ours("huge_line", "seconds")
    fleet = {
        figure: results.median("fleet", "free", "ours", figure)
        for figure in ("rss_kb_per_server", "threads_per_server", "stall_ms")
    }
    traced = results.median("fleet_traced", "free", "ours", "traced_kb_per_server")
    loaded = results.last("imports", "free", "ours", "loaded")
    peak = results.ratio("memory", "free", "peak_mb", "ours", "sdk")
    imports = results.median("imports", "free", "ours", "import_ms")
    handle_call = ours("handle_call", "p50_us")
    return [
        Goal("sequential, pinned: share of raw", rate("sequential", "pinned", "raw"), "≥", 0.50),
        Goal(
            "sequential, pinned: against the SDK", rate("sequential", "pinned", "sdk"), "≥", 5, " ×"
        ),
        Goal(
            "sequential, free: against the SDK", rate("sequential", "free", "sdk"), "≥", 2.4, " ×"
        ),
        *[
            Goal(
                f"100 in flight, {mode}: calls/s against the SDK",
                rate("in_flight", mode, "sdk"),
                "≥",
                15,
                " ×",
            )
            for mode in BOTH
        ],
        *[Goal(f"100 in flight, {mode}: CPU a call", cpu(mode), "≤", 12, " µs") for mode in BOTH],
        *[
            Goal(
                f"10 MiB read, {mode}: faster than the SDK",
                faster("reads", mode, "mib10_ms"),
                "≥",
                8,
                " ×",
            )
            for mode in BOTH
        ],
        Goal("100 MiB line: the slower mode", at_most([huge(mode) for mode in BOTH]), "≤", 2, " s"),
        *[
            Goal(
                f"1 000 tools listed, {mode}: faster than the SDK",
                faster("tools", mode, "list_ms"),
                "≥",
                10,
                " ×",
            )
            for mode in BOTH
        ],
        Goal("import: over a bare interpreter", imports, "≤", 60, " ms"),
        *[
            Goal(
                f"import of mcpclient.{face}: over a bare interpreter",
                results.median("imports", "free", "ours", f"{face}_ms"),
                "≤",
                60,
                " ms",
            )
            for face in ("handles", "blocking")
        ],
        Goal(
            "import: HTTP libraries and loop backends loaded",
            None if loaded is None else float(len(loaded)),
            "≤",
            0,
        ),
        Goal("peak memory after a call: share of the SDK's", peak, "≤", 0.45),
        Goal("a connected server: memory, resident", fleet["rss_kb_per_server"], "≤", 40, " KB"),
        Goal("a connected server: memory, traced", traced, "≤", 40, " KB"),
        # A pool may have grown by a few threads; a thread for each server would be 1.
        Goal("a connected server: threads", fleet["threads_per_server"], "≤", 0.1),
        *[
            Goal(
                f"a handle call, {mode}: the host's thread, p50", handle_call(mode), "≤", 50, " µs"
            )
            for mode in BOTH
        ],
        *[
            Goal(
                f"sequential over HTTP, {mode}: against the SDK",
                rate("web_sequential", mode, "sdk"),
                "≥",
                1.5,
                " ×",
            )
            for mode in BOTH
        ],
        # The limit of connections to one server; so many calls would else open two hundred.
        Goal(
            "200 in flight over HTTP: connections",
            results.median("web_in_flight", "free", "ours", "connections"),
            "≤",
            16,
        ),
        Goal(
            "a server behind a URL that nobody uses: memory, resident",
            results.median("web_idle", "free", "ours", "rss_kb_per_server"),
            "≤",
            10,
            " KB",
        ),
        Goal(
            "1 000 servers behind URLs that nobody uses: descriptors and threads",
            at_most(
                [results.median("web_idle", "free", "ours", name) for name in ("fds", "threads")]
            ),
            "≤",
            0,
        ),
        Goal("50 servers started: longest stall of the loop", fleet["stall_ms"], "≤", 30, " ms"),
    ]
