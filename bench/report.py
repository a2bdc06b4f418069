"""A run as a Markdown table for people. Measures nothing and judges nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bench.goals import Goal
from bench.imports import STATEMENTS
from bench.plan import EVERYBODY, Mode, Who
from bench.results import Results


@dataclass(frozen=True, slots=True)
class Row:
    """One line: which figure, and whether more or less of it is better."""

    title: str
    name: str
    figure: str
    better: Literal["more", "less", "-"] = "less"
    modes: tuple[Mode, ...] = ("pinned", "free")


ROWS = (
    Row("sequential, calls/s", "sequential", "per_second", "more"),
    Row("sequential, p50 µs", "sequential", "p50_us"),
    Row("sequential, p99 µs", "sequential", "p99_us"),
    Row("sequential, CPU µs a call", "sequential", "cpu_us"),
    Row("100 in flight, calls/s", "in_flight", "per_second", "more"),
    Row("100 in flight, CPU µs a call", "in_flight", "cpu_us"),
    Row("read of 1 MiB, ms", "reads", "mib1_ms"),
    Row("read of 10 MiB, ms", "reads", "mib10_ms"),
    Row("one line of 100 MiB, s", "huge_line", "seconds"),
    Row("list of 1 000 tools, ms", "tools", "list_ms"),
    Row("import, ms over a bare interpreter", "imports", "import_ms", "less", ("free",)),
    Row("import and first name, ms", "imports", "first_name_ms", "less", ("free",)),
    Row("import of mcpclient.handles, ms", "imports", "handles_ms", "less", ("free",)),
    Row("… and first name, ms", "imports", "handles_first_name_ms", "less", ("free",)),
    Row("import of mcpclient.blocking, ms", "imports", "blocking_ms", "less", ("free",)),
    Row("… and first name, ms", "imports", "blocking_first_name_ms", "less", ("free",)),
    Row("peak memory after a call, MB", "memory", "peak_mb", "less", ("free",)),
    Row("50 servers: until all are connected, s", "fleet", "start_s", "less", ("free",)),
    Row("50 servers: longest stall of the loop, ms", "fleet", "stall_ms", "less", ("free",)),
    Row("… less its wait for a core, ms", "fleet", "stall_own_ms", "less", ("free",)),
    Row(
        "first servers of a process: longest stall, ms",
        "fleet",
        "stall_first_ms",
        "less",
        ("free",),
    ),
    Row(
        "memory per connected server, resident KB", "fleet", "rss_kb_per_server", "less", ("free",)
    ),
    Row(
        "memory per connected server, traced KB",
        "fleet_traced",
        "traced_kb_per_server",
        "less",
        ("free",),
    ),
    Row("threads per connected server", "fleet", "threads_per_server", "-", ("free",)),
    Row("descriptors per connected server", "fleet", "fds_per_server", "-", ("free",)),
    Row("a handle call: the host's thread, p50 µs", "handle_call", "p50_us"),
    Row("a handle call: the host's thread, p99 µs", "handle_call", "p99_us"),
    Row("a tick with an answer, p50 µs", "handle_call", "tick_p50_us"),
    Row("over HTTP: sequential, calls/s", "web_sequential", "per_second", "more"),
    Row("over HTTP: sequential, p50 µs", "web_sequential", "p50_us"),
    Row("over HTTP: sequential, CPU µs a call", "web_sequential", "cpu_us"),
    Row("over HTTP: 200 in flight, calls/s", "web_in_flight", "per_second", "more", ("free",)),
    Row("over HTTP: 200 in flight, connections", "web_in_flight", "connections", "-", ("free",)),
    Row("over HTTP: 1 000 unused servers, ms to open", "web_idle", "open_ms", "less", ("free",)),
    Row("over HTTP: an unused server, KB", "web_idle", "rss_kb_per_server", "less", ("free",)),
    Row("32 threads on 4 servers, calls/s", "many_threads", "per_second", "more", ("free",)),
    Row("32 threads on 4 servers, CPU µs a call", "many_threads", "cpu_us", "less", ("free",)),
)

NAMES: Mapping[Who, str] = {"raw": "raw pipes", "ours": "mcpclient", "sdk": "official SDK"}


def number(value: float | None) -> str:
    """Write a figure with three digits that matter."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def times(row: Row, value: float | None) -> str:
    """Write ours against another: how many times better, whichever way better is."""
    if value is None or row.better == "-" or not value:
        return "–"
    better = value if row.better == "more" else 1 / value
    return f"{better:.2f} ×" if better < 10 else f"{better:.0f} ×"


def table(results: Results) -> list[str]:
    """Write all that was measured."""
    lines = [
        "| | | " + " | ".join(NAMES[who] for who in EVERYBODY) + " | ours : raw | ours : SDK |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        for mode in row.modes:
            cells = [results.median(row.name, mode, who, row.figure) for who in EVERYBODY]
            if all(cell is None for cell in cells):
                continue
            ratios = [
                times(row, results.ratio(row.name, mode, row.figure, "ours", to))
                for to in ("raw", "sdk")
            ]
            lines.append(f"| {' | '.join([row.title, mode, *map(number, cells), *ratios])} |")
    return lines


def verdicts(judged: list[Goal]) -> list[str]:
    """Write every goal with what it came to."""
    lines = ["| goal | bound | measured | |", "|---|---:|---:|---|"]
    for goal in judged:
        bound = f"{goal.side} {goal.bound:g}{goal.unit}"
        value = "–" if goal.value is None else f"{number(goal.value)}{goal.unit}"
        lines.append(f"| {goal.text} | {bound} | {value} | {goal.verdict} |")
    return lines


def loaded(results: Results) -> list[str]:
    """Say what an import drags in."""
    lines: list[str] = []
    for who, (text, _) in STATEMENTS.items():
        found = results.last("imports", "free", who, "loaded")
        if found is not None:
            names = ", ".join(found) or "none"
            lines.append(f"- HTTP libraries and loop backends that `{text}` loads: {names}")
    return lines


def write_up(
    results: Results, judged: list[Goal], about: Mapping[str, Any], troubles: list[str]
) -> str:
    """Write the whole page."""
    versions = ", ".join(
        f"{name} {version}"
        for packages in about["packages"].values()
        for name, version in packages.items()
    )
    kind = " (quick run)" if about["quick"] else ""
    lines = [
        f"# Benchmark of {about['date']}",
        "",
        f"CPython {about['python']}, {about['cpus']} CPUs, {about['system']}; {versions}.",
        f"Alternating rounds, medians of {about['rounds']}{kind}.",
        "“Pinned”: client and server on one core. “n ×”: ours is n times better.",
        "",
        *table(results),
        "",
        *loaded(results),
        "",
        *(verdicts(judged) if judged else []),
    ]
    if troubles:
        lines += ["", "Troubles:", "", *[f"- {trouble}" for trouble in troubles]]
    return "\n".join(lines) + "\n"
