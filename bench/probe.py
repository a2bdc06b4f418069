"""What the kernel says about this process, and how a measurement is asked for and told.

Has never heard of MCP. Standard library only, since every contestant's environment loads it; and
nothing heavy, since it counts in every contestant's peak memory.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """One measurement, as ordered on a driver's command line."""

    name: str
    server: list[str]
    cpu: int | None
    seconds: float
    repeat: int
    count: int


def read_order(argv: list[str]) -> Order:
    """Read `NAME key=value … -- server argv`; argparse would weigh in the peak memory."""
    split = argv.index("--")
    name, options = argv[0], dict(item.split("=", 1) for item in argv[1:split])
    return Order(
        name=name,
        server=argv[split + 1 :],
        cpu=int(options["cpu"]) if "cpu" in options else None,
        seconds=float(options.get("seconds", "1")),
        repeat=int(options.get("repeat", "3")),
        count=int(options.get("count", "50")),
    )


def begin(argv: list[str]) -> Order:
    """Read the order and take the core it names, before any child is spawned: they inherit it."""
    order = read_order(argv)
    if order.cpu is not None:
        os.sched_setaffinity(0, {order.cpu})
    return order


def tell(figures: Figures) -> None:
    """Print the figures as the one line that `run.py` reads."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def quantile(ordered: list[int], q: float) -> int:
    """Give the value below which a share `q` of a sorted, non-empty list lies (nearest rank)."""
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def median(values: list[float]) -> float:
    """Give the median of a non-empty list."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def latency_figures(spans_ns: list[int], elapsed_ns: int, cpu_seconds: float) -> Figures:
    """Sum up one run of sequential calls."""
    calls = len(spans_ns)
    ordered = sorted(spans_ns)
    return {
        "calls": calls,
        "per_second": calls / (elapsed_ns / 1e9),
        "p50_us": quantile(ordered, 0.50) / 1e3,
        "p99_us": quantile(ordered, 0.99) / 1e3,
        "cpu_us": cpu_seconds / calls * 1e6,
    }


def flow_figures(calls: int, elapsed: float, cpu_seconds: float) -> Figures:
    """Sum up one run of many calls in flight."""
    return {
        "calls": calls,
        "per_second": calls / elapsed,
        "cpu_us": cpu_seconds / calls * 1e6,
    }


def peak_kb() -> int:
    """Give the largest resident size since this program began, in KiB.

    `VmHWM` where there is one: `ru_maxrss` survives exec, so a child of a large parent would
    report its parent's size.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1])
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


def resident_kb() -> int | None:
    """Give the resident size now, in KiB; None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except OSError:
        return None


def threads() -> int:
    """Count the threads of this process, those that Python did not start included."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def descriptors() -> int | None:
    """Count the open file descriptors; None where the system does not tell."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder)) - 1  # less the one that lists
        except OSError:
            continue
    return None


class CoreWait:
    """Reads how long the thread that makes it was runnable and had no core."""

    def __init__(self) -> None:
        try:
            self._fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._fd = -1

    def seconds(self) -> float:
        """Give the total so far; always 0 where the kernel does not count it."""
        if self._fd < 0:
            return 0.0
        return int(os.pread(self._fd, 96, 0).split()[1]) / 1e9

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
