"""Runs one scenario of the official suite and judges it strictly. Knows no scenario by its name.

The suite itself ticks scenarios in which nothing was checked, and in its mode for many at once it
ignores how a client ends. So each one is run alone, and counts only if the suite ends well, at
least one check succeeds, and none fails or warns.

``scripts/setup_real.py conformance`` installs the suite, with a Node.js of its own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.conftest import ROOT

HOME = ROOT / ".real" / "conformance"
SUITE = HOME / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
VERSIONS = ("2025-11-25", "2026-07-28")
# What the suite itself asks for.
_OLDEST_NODE = 22
# How long one scenario may take: what the suite gives a client, and some for itself.
_GIVEN, _SOME = 60, 30
_LISTED = re.compile(r"^ +- (?P<name>\S+)(?: \[(?P<versions>[^\]]*)\])?$", re.MULTILINE)


class Verdict(Struct, frozen=True, kw_only=True):
    """What came of one scenario.

    Attributes:
        scenario: Its name.
        version: The version of the protocol that was spoken.
        code: What the suite ended with; None if it had to be ended.
        succeeded: How many checks succeeded.
        skipped: How many said that they could not be made.
        problems: The checks that failed or warned, in their own words.
        output: The end of what the suite, and who was tested, wrote.
    """

    scenario: str
    version: str
    code: int | None
    succeeded: int
    skipped: int
    problems: tuple[str, ...]
    output: str

    @property
    def passed(self) -> bool:
        """Whether it counts."""
        return self.code == 0 and self.succeeded > 0 and not self.problems

    def __str__(self) -> str:
        named = f"{self.scenario} ({self.version})"
        if self.passed:
            return f"{named}: passed, {self.succeeded} checks"
        problems = list(self.problems)
        if self.code is None:
            problems.append(f"it took more than {_GIVEN + _SOME} s")
        elif self.code != 0 and not problems:
            problems.append(f"the suite ended with {self.code}")
        elif not self.succeeded and not problems:
            problems.append("nothing was checked")
        return "\n".join([f"{named}: not passed", *problems, "--", self.output])


def missing() -> str:
    """Return why the suite cannot be run here, or an empty string."""
    if not SUITE.exists():
        return "the official suite is not installed (scripts/setup_real.py conformance)"
    if node() is None:
        return f"there is no Node.js of version {_OLDEST_NODE} or newer"
    return ""


def node() -> str | None:
    """Return the Node.js to run the suite with: the one beside it, or a new enough one on PATH."""
    for beside in sorted(HOME.glob("node_modules/node-*/bin/node")):
        return str(beside)
    found = shutil.which("node")
    if found is None:
        return None
    told = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    major = re.match(r"v(\d+)", told)
    return found if major is not None and int(major[1]) >= _OLDEST_NODE else None


def listed(role: str, version: str) -> list[str]:
    """Return the names of the scenarios for ``client`` or ``server`` in a version's dated set."""
    code, output = _run("list", f"--{role}", "--spec-version", version)
    if code != 0:
        raise RuntimeError(f"the suite does not list its scenarios:\n{output}")
    return [found["name"] for found in _LISTED.finditer(output)]


def run_client(command: list[str], scenario: str, version: str) -> Verdict:
    """Run a scenario against a client, a command that is given the server's URL as last word."""
    # The suite hands its text to a shell.
    return _verdict("client", scenario, version, "--command", shlex.join(command))


def run_server(url: str, scenario: str, version: str) -> Verdict:
    """Run a scenario against a server that listens at a URL."""
    return _verdict("server", scenario, version, "--url", url)


def _verdict(role: str, scenario: str, version: str, *target: str) -> Verdict:
    with tempfile.TemporaryDirectory() as out:
        code, output = _run(
            role,
            *target,
            *("--scenario", scenario, "--spec-version", version),
            *("--timeout", str(_GIVEN * 1000), "-o", out),
        )
        checks = _checks(Path(out))
    status = [check.get("status") for check in checks]
    return Verdict(
        scenario=scenario,
        version=version,
        code=code,
        succeeded=status.count("SUCCESS"),
        skipped=status.count("SKIPPED"),
        problems=tuple(
            _told(check) for check in checks if check.get("status") in ("FAILURE", "WARNING")
        ),
        output=output[-4000:],
    )


def _checks(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for path in out.glob("**/checks.json"):
        found += json.loads(path.read_text(encoding="utf-8"))
    return found


def _told(check: dict[str, Any]) -> str:
    said = check.get("errorMessage") or check.get("description") or "no reason is given"
    details = json.dumps(check.get("details"), ensure_ascii=False) if "details" in check else ""
    return f"{check.get('status')} {check.get('name') or check.get('id')}: {said} {details[:1500]}"


def _run(*words: str) -> tuple[int | None, str]:
    """Run the suite and return how it ended and what it wrote; None if it had to be ended."""
    program = node()
    if program is None:
        raise RuntimeError(missing())
    process = subprocess.Popen(
        [program, str(SUITE), *words],
        cwd=ROOT,
        # A tenth of its start is saved if the code is compiled once.
        env={**os.environ, "NODE_COMPILE_CACHE": str(HOME / "compiled")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_GIVEN + _SOME)
    except BaseException as problem:  # whatever ends the wait ends what is waited for
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        if not isinstance(problem, subprocess.TimeoutExpired):
            raise
        return None, output
    return process.returncode, output
