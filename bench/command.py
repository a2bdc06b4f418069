"""The command: parses its options, lets the contestants alternate, and writes the results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, get_args

from bench import children, imports
from bench.children import ROOT, DriverFailed, figures_of, reap_strays, run
from bench.goals import goals
from bench.plan import EVERYBODY, IMPORTS, PLAN, SERVERS, Measurement, Mode, Who
from bench.report import write_up
from bench.results import Results

RESULTS = ROOT / "bench" / "results"
SDK_PYTHON = ".real/sdk/bin/python"
DRIVERS: dict[Who, str] = {
    "raw": "bench.drive_raw",
    "ours": "bench.drive_ours",
    "sdk": "bench.drive_sdk",
}
PACKAGES: dict[Who, tuple[str, ...]] = {
    "raw": (),
    "ours": ("mcpclient", "anyio", "msgspec"),
    "sdk": ("mcp", "pydantic"),
}
# (full, quick): rounds; seconds within which a round must be expected to end, or it is not begun;
# seconds after which nothing is measured any more.
ROUNDS = (5, 2)
BUDGET = (275.0, 54.0)
END = (290.0, 57.0)


@dataclass(slots=True)
class Bench:
    """One run."""

    pythons: dict[Who, str]
    quick: bool
    chosen: list[Measurement]
    end: float
    results: Results = field(default_factory=Results)
    troubles: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)  # seconds of each measurement's last round

    def note(self, trouble: str) -> None:
        """Keep a trouble for the report; the same one counts once."""
        if trouble not in self.troubles:
            self.troubles.append(trouble)

    def order(self, measurement: Measurement, mode: Mode) -> list[str]:
        """Write a measurement as the words that a driver reads."""
        words = [
            measurement.name,
            f"seconds={measurement.seconds[self.quick]}",
            f"repeat={measurement.repeat[self.quick]}",
            f"count={SERVERS}",
        ]
        if mode == "pinned":
            words.append(f"cpu={max(os.sched_getaffinity(0))}")
        # The server always runs on this interpreter, whichever the client needs.
        return [*words, "--", sys.executable, measurement.server]

    def one(self, measurement: Measurement, mode: Mode, who: Who) -> None:
        """Let one contestant do one measurement once."""
        limit = min(measurement.limit, self.end - time.monotonic())
        label = f"{who}: {measurement.name}, {mode}"
        if limit < 1:
            self.note(f"{label}: no time left")
            return
        try:
            if measurement.name == IMPORTS:
                figures = imports.measure(
                    who, self.pythons[who], measurement.repeat[self.quick], limit
                )
            else:
                driver = (measurement.driver or DRIVERS[who]).format(who=who)
                argv = [self.pythons[who], "-m", driver, *self.order(measurement, mode)]
                figures = figures_of(argv, limit)
        except DriverFailed as failure:
            print(f"\n{label} failed: {failure}", file=sys.stderr)
            self.note(f"{label}: failed, see the terminal")
        else:
            self.results.add(measurement.name, mode, who, figures)
        if strays := reap_strays(grace=3):
            self.note(f"{label}: left {strays} processes behind; they were killed")

    def due(self, number: int) -> list[Measurement]:
        """List what a round measures; what is slow and steady has fewer rounds than the rest."""
        return [
            measurement for measurement in self.chosen if number < measurement.rounds[self.quick]
        ]

    def expected(self, number: int) -> float:
        """Guess the seconds that a round will take, from the one before it."""
        return sum(self.took.get(measurement.name, 0) for measurement in self.due(number))

    def round(self, number: int) -> None:
        """Let the contestants alternate through the plan."""
        for measurement in self.due(number):
            begun = time.monotonic()
            for mode in modes(measurement):
                for who in measurement.who:
                    if who in self.pythons:
                        self.one(measurement, mode, who)
            self.took[measurement.name] = time.monotonic() - begun


def modes(measurement: Measurement) -> tuple[Mode, ...]:
    """Leave out what this system cannot do."""
    if hasattr(os, "sched_setaffinity"):
        return measurement.modes
    return tuple(mode for mode in measurement.modes if mode != "pinned")


def versions(python: str, packages: Iterable[str]) -> dict[str, str]:
    """Ask an interpreter for the versions of some packages; empty if one is missing."""
    code = (
        "import json, sys\nfrom importlib.metadata import version\n"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    found: dict[str, str] = json.loads(run([python, "-c", code, *packages], 20))
    return found


def contestants(
    asked: list[Who], sdk_python: str
) -> tuple[dict[Who, str], dict[str, Any], list[str]]:
    """Find out who can take part: interpreters, versions, and why somebody is missing."""
    pythons: dict[Who, str] = {}
    packages: dict[str, Any] = {}
    troubles: list[str] = []
    for who in asked:
        python = sdk_python if who == "sdk" else sys.executable
        try:
            found = versions(python, PACKAGES[who])
            if who in imports.STATEMENTS:
                run([python, "-c", imports.STATEMENTS[who][1]], 20)
        except (OSError, DriverFailed) as failure:
            print(f"{who} cannot take part: {failure}", file=sys.stderr)
            what = "`make bench` installs it" if who == "sdk" else "see the terminal"
            troubles.append(f"{who}: cannot be imported; {what}")
        else:
            pythons[who] = python
            if found:
                packages[who] = found
    return pythons, packages, troubles


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    names = [measurement.name for measurement in PLAN]
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute, figures less steady")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--who", nargs="+", choices=get_args(Who), default=list(EVERYBODY))
    parser.add_argument("--rounds", type=int, help="how often each measurement is made")
    parser.add_argument("--sdk-python", default=SDK_PYTHON, help=f"default: {SDK_PYTHON}")
    return parser.parse_args(argv)


def say(text: str) -> None:
    """Tell on stderr how far the run is; stdout is for the table."""
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    """Run the benchmark; 1 if anything could not be measured, whatever the figures are."""
    options = parse(argv)
    quick: bool = options.quick
    start = time.monotonic()
    children.adopt_orphans()
    # As Ctrl-C: the driver that runs is ended, then its servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rounds_done = 0
    try:
        pythons, packages, troubles = contestants(options.who, options.sdk_python)
        bench = Bench(
            pythons=pythons,
            quick=quick,
            chosen=[m for m in PLAN if options.only is None or m.name in options.only],
            end=start + END[quick],
            troubles=troubles,
        )
        rounds = options.rounds or ROUNDS[quick]
        while rounds_done < rounds:
            if not bench.due(rounds_done):
                break
            if time.monotonic() - start + bench.expected(rounds_done) > BUDGET[quick]:
                say(f"stopped after {rounds_done} rounds, to end in time")
                break
            say(f"round {rounds_done + 1} of {rounds}")
            bench.round(rounds_done)
            rounds_done += 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        reap_strays(grace=3)

    partial = options.only is not None or len(pythons) < len(EVERYBODY)
    judged = [goal for goal in goals(bench.results) if not partial or goal.value is not None]
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "quick": quick,
        "rounds": rounds_done,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "packages": packages,
    }
    page = write_up(bench.results, judged, about, bench.troubles)
    document = {
        **about,
        "goals": [goal.as_json() for goal in judged],
        "troubles": bench.troubles,
        "results": bench.results.as_json(),
    }
    RESULTS.mkdir(exist_ok=True)
    name = "partial" if partial else "latest"  # a look at one figure must not replace a whole run
    (RESULTS / f"{name}.md").write_text(page, encoding="utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(page, end="")
    say(f"{time.monotonic() - start:.0f} s; written to bench/results/{name}.md and {name}.json")
    return 1 if bench.troubles else 0
