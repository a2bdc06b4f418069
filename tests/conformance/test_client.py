"""Every scenario of the official suite that needs no OAuth passes, judged strictly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance import runner
from tests.conformance.client import SCENARIOS

CLIENT = [sys.executable, str(Path(__file__).with_name("client.py"))]
# By the version of the dated set. Those whose names begin with "auth/" need OAuth.
SETS = {
    "2025-11-25": (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
MISSING = runner.missing()
needs_suite = pytest.mark.skipif(bool(MISSING), reason=MISSING)


# The suite takes long to start, so the backends take turns.
RUNS = [
    (version, scenario, ("asyncio", "trio")[place % 2])
    for version, scenarios in SETS.items()
    for place, scenario in enumerate(scenarios)
]


@needs_suite
@pytest.mark.parametrize(("version", "scenario", "backend"), RUNS)
def test_the_client_passes(version: str, scenario: str, backend: str) -> None:
    verdict = runner.run_client([*CLIENT, backend], scenario, version)
    assert verdict.passed, str(verdict)


@needs_suite
@pytest.mark.parametrize("version", SETS)
def test_no_scenario_without_oauth_is_left_out(version: str) -> None:
    listed = runner.listed("client", version)
    assert len(listed) == {"2025-11-25": 19, "2026-07-28": 33}[version]
    assert [name for name in listed if not name.startswith("auth/")] == list(SETS[version])
    assert set(SETS[version]) <= set(SCENARIOS)


@needs_suite
def test_a_client_that_does_nothing_passes_nothing() -> None:
    verdict = runner.run_client(["true"], "initialize", "2025-11-25")
    assert not verdict.passed
    assert "nothing was checked" in str(verdict)
    verdict = runner.run_client(["true"], "tools_call", "2026-07-28")
    assert not verdict.passed
    assert "FAILURE ToolAddNumbers: " in str(verdict)


@needs_suite
def test_a_client_that_fails_does_not_pass() -> None:
    verdict = runner.run_client(["false"], "json-schema-ref-no-deref", "2026-07-28")
    assert (verdict.passed, verdict.code) == (False, 1)


@pytest.mark.parametrize(
    ("code", "succeeded", "problems", "says"),
    [
        (0, 3, (), "x (2026-07-28): passed, 3 checks"),
        (0, 0, (), "nothing was checked"),
        (0, 3, ("WARNING Name: it should",), "WARNING Name: it should"),
        (1, 3, ("FAILURE Name: it must",), "FAILURE Name: it must"),
        (1, 3, (), "the suite ended with 1"),
        (None, 3, (), "it took more than 90 s"),
    ],
)
def test_only_a_good_end_with_checks_and_without_problems_counts(
    code: int | None, succeeded: int, problems: tuple[str, ...], says: str
) -> None:
    verdict = runner.Verdict(
        scenario="x",
        version="2026-07-28",
        code=code,
        succeeded=succeeded,
        skipped=0,
        problems=problems,
        output="",
    )
    assert verdict.passed == says.startswith("x ")
    assert says in str(verdict)
