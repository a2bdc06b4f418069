"""Scores of the official suite as a table: of this client, or of a server that listens at a URL.

    python -m tests.conformance.run client [--with-oauth]
    python -m tests.conformance.run server --url http://127.0.0.1:8000/mcp
    python -m tests.conformance.run server --command "python server.py"    its URL is its first line

Each scenario is run alone and judged strictly (see the runner), in the dated sets of both versions.
Ends with 0 if all passed.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conformance import runner
from tests.conformance.runner import Verdict

CLIENT = [sys.executable, str(Path(__file__).with_name("client.py"))]


def scores(
    role: str, judge: Callable[[str, str], Verdict], *, wanted: Callable[[str], bool]
) -> list[Verdict]:
    """Run all scenarios of a role that are wanted, two at a time, and print a line for each."""
    pairs = [
        (name, version)
        for version in runner.VERSIONS
        for name in runner.listed(role, version)
        if wanted(name)
    ]
    found = []
    with ThreadPoolExecutor(2) as pool:
        for verdict in pool.map(lambda pair: judge(*pair), pairs):
            found.append(verdict)
            mark = "passed" if verdict.passed else "FAILED"
            print(f"| {verdict.version} | {verdict.scenario} | {mark} | {told(verdict)} |")
    return found


def told(verdict: Verdict) -> str:
    """Return what a cell of the table says of a verdict."""
    skipped = f", {verdict.skipped} skipped" if verdict.skipped else ""
    if verdict.passed:
        return f"{verdict.succeeded} checks{skipped}"
    return str(verdict).split("\n")[1][:200].replace("|", "\\|")


@contextlib.contextmanager
def serving(command: str) -> Iterator[str]:
    """Run a server, and give the URL that it writes as its first line."""
    process = subprocess.Popen(
        shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=20)


def main() -> int:
    """Print the table of what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(description="Scores of the official conformance suite.")
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("--url", help="where the server listens")
    parser.add_argument("--command", help="what runs the server and writes its URL first")
    parser.add_argument("--with-oauth", action="store_true", help="the client's auth/ too")
    parser.add_argument("--only", default="", help="scenarios whose names hold this")
    parser.add_argument("--details", action="store_true", help="all that is said of what failed")
    said = parser.parse_args()
    if problem := runner.missing():
        print(problem, file=sys.stderr)
        return 2
    if said.role == "server" and bool(said.url) is bool(said.command):
        parser.error("give --url or --command")

    def wanted(name: str) -> bool:
        oauth = said.role == "client" and name.startswith("auth/") and not said.with_oauth
        return said.only in name and not oauth

    print("| set | scenario | | |\n|---|---|---|---|")
    if said.role == "client":
        found = scores(
            "client",
            lambda name, version: runner.run_client(CLIENT, name, version),
            wanted=wanted,
        )
    else:
        with serving(said.command) if said.command else contextlib.nullcontext(said.url) as url:
            found = scores(
                "server",
                lambda name, version: runner.run_server(url, name, version),
                wanted=wanted,
            )
    print()
    for version in runner.VERSIONS:
        mine = [verdict for verdict in found if verdict.version == version]
        print(f"{said.role} {version}: {sum(one.passed for one in mine)}/{len(mine)}")
    failed = [verdict for verdict in found if not verdict.passed]
    if said.details:
        print(*failed, sep="\n\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
