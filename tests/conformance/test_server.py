"""Every scenario of the official suite for servers is passed by `everything`, judged strictly."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.conformance import run, runner
from tests.conformance.runner import Verdict
from tests.conftest import ROOT, SERVERS

MISSING = runner.missing()
needs_suite = pytest.mark.skipif(bool(MISSING), reason=MISSING)
BOTH = (
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
)
# By the version of the dated set.
SETS = {
    "2025-11-25": (
        *BOTH,
        "server-initialize",
        "server-session-lifecycle",
        "logging-set-level",
        "ping",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "server-sse-polling",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    ),
    "2026-07-28": (
        *BOTH,
        "server-stateless",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "http-custom-header-server-validation",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-missing-input-response",
        "input-required-result-non-tool-request",
        "input-required-result-result-type",
        "input-required-result-unsupported-methods",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    ),
}
# What both sets have takes turns here; `python -m tests.conformance.run server` runs all of both.
RUNS = [
    (version, scenario)
    for turn, (version, scenarios) in enumerate(SETS.items())
    for place, scenario in enumerate(scenarios)
    if scenario not in BOTH or place % 2 == turn
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all."""
    with run.serving(f"{sys.executable} {SERVERS / 'everything.py'} http --port 0") as found:
        yield found


@needs_suite
@pytest.mark.parametrize(("version", "scenario"), RUNS)
def test_the_kits_server_passes(url: str, version: str, scenario: str) -> None:
    verdict = runner.run_server(url, scenario, version)
    assert verdict.passed, str(verdict)


@needs_suite
@pytest.mark.parametrize("version", SETS)
def test_no_scenario_for_servers_is_left_out(version: str) -> None:
    assert sorted(runner.listed("server", version)) == sorted(SETS[version])


@needs_suite
def test_a_server_that_is_not_there_passes_nothing() -> None:
    verdict = runner.run_server("http://127.0.0.1:9/mcp", "tools-list", "2026-07-28")
    assert not verdict.passed


def test_the_docs_tell_the_score_of_all_that_is_run() -> None:
    text = (ROOT / "docs" / "serverkit.md").read_text(encoding="utf-8")
    for version, scenarios in SETS.items():
        count = len(scenarios)
        assert f"| {version} | {count} of {count} |" in text


def test_a_verdict_with_a_warning_is_no_pass() -> None:
    verdict = Verdict(
        scenario="x",
        version="2026-07-28",
        code=0,
        succeeded=9,
        skipped=0,
        problems=("WARNING it should",),
        output="",
    )
    assert not verdict.passed
