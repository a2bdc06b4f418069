"""Which era a server belongs to: the decision table of the probe, row by row.

The rows stand in section 1.2 of the client checklist.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.protocol.eras import Refused, Terms
from mcpclient.protocol.eras.probe import (
    Death,
    Outcome,
    ProbeAgain,
    Respawn,
    Shake,
    Silence,
    Speak,
    Verdict,
    judge,
)
from mcpclient.protocol.events import Answer, Broken, Refusal
from tests.protocol import quick

MODERN = "2026-07-28"
NEWEST_OLD = "2025-11-25"
OURS = "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"


def result(value: Any) -> Answer:
    """Return the outcome that is a result."""
    return Answer(1, Raw(json.dumps(value).encode()))


def discovered(*supported: Any, **members: Any) -> Answer:
    """Return the outcome that is a DiscoverResult."""
    return result({"supportedVersions": list(supported), "capabilities": {}, **members})


def refused(code: int, data: Any = None, message: str = "no") -> Refusal:
    """Return the outcome that is an error."""
    return Refusal(1, code, message, Raw(b"" if data is None else json.dumps(data).encode()))


def unsupported(*supported: Any) -> Refusal:
    """Return the outcome that is an UnsupportedProtocolVersion error."""
    return refused(-32022, {"supported": list(supported), "requested": MODERN})


def spoken(version: str = MODERN) -> Speak:
    """Return the verdict of a plain stateless server."""
    return Speak(Terms(version=version))


def no_common(theirs: str) -> Refused:
    """Return the verdict that names both lists."""
    return Refused(f"no common protocol version: the server speaks {theirs}; we speak {OURS}")


NO_DISCOVERY: list[Any] = [
    None,
    [],
    {},
    "text",
    5,
    True,
    {"tools": []},
    {"supportedVersions": None},
    {"supportedVersions": MODERN},
    {"supportedVersions": {MODERN: 1}},
    {"supported": [MODERN]},
    [{"supportedVersions": [MODERN]}],
]

ROWS: list[tuple[str, Outcome, Verdict]] = [
    # A DiscoverResult with a version of the stateless era in common.
    ("only ours", discovered(MODERN), spoken()),
    ("ours among others", discovered("2099-01-01", NEWEST_OLD, MODERN), spoken()),
    ("the golden example", discovered(MODERN, NEWEST_OLD), spoken()),
    # ... with only a version of the handshake era in common.
    ("one old", discovered("2025-06-18"), Shake("2025-06-18")),
    ("the newest old", discovered("2024-11-05", "2025-11-25", "zzz"), Shake("2025-11-25")),
    # ... with nothing in common.
    ("nothing", discovered("2099-01-01", "1999-01-01"), no_common("2099-01-01, 1999-01-01")),
    ("an empty list", discovered(), no_common("none")),
    ("no versions", discovered(None, 5, ["x"]), no_common("None, 5, that is no text")),
    # -32022 with a version of the stateless era in common.
    ("unsupported, ours", unsupported(MODERN), ProbeAgain(MODERN)),
    ("unsupported, both eras", unsupported(NEWEST_OLD, MODERN), ProbeAgain(MODERN)),
    # ... with only versions of the handshake era in common.
    ("unsupported, old", unsupported("2024-11-05", "2025-03-26"), Shake("2025-03-26")),
    # ... with nothing in common, or without saying what.
    ("unsupported, alien", unsupported("2099-01-01"), no_common("2099-01-01")),
    ("unsupported, silent", refused(-32022), no_common("none")),
    ("unsupported, null", refused(-32022, {"supported": None}), no_common("none")),
    ("unsupported, text", refused(-32022, "no"), no_common("none")),
    # The two other codes that only a stateless server gives.
    ("header mismatch", refused(-32020), ProbeAgain(MODERN)),
    ("missing capability", refused(-32021, {"requiredCapabilities": {}}), ProbeAgain(MODERN)),
    # Any other code, whatever it is called in drafts.
    *(
        (f"code {code}", refused(code, {"supported": [MODERN]}), Shake(NEWEST_OLD))
        for code in (
            -32601,
            -32602,
            -32600,
            -32603,
            -32700,
            -32000,
            -32001,
            -32002,
            -32003,
            -32004,
            -32019,
            -32023,
            -32042,
            -32099,
            -1,
            0,
            1,
            32022,
            -320220,
        )
    ),
    # No answer in time.
    ("silence", Silence(), Shake(NEWEST_OLD)),
    # A result that is no DiscoverResult.
    *((f"result {value!r}", result(value), Shake(NEWEST_OLD)) for value in NO_DISCOVERY),
    ("a broken answer", Broken(1, "broken JSON"), Shake(NEWEST_OLD)),
    # The end of the process.
    ("death", Death(), Respawn()),
]


@pytest.mark.parametrize(
    ("outcome", "verdict"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_each_row_of_the_table_has_its_verdict(outcome: Outcome, verdict: Verdict) -> None:
    assert judge(outcome, again=False) == verdict


@pytest.mark.parametrize(("outcome", "first"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
def test_there_is_no_third_probe_and_the_other_verdicts_stay(
    outcome: Outcome, first: Verdict
) -> None:
    verdict = judge(outcome, again=True)
    if isinstance(first, ProbeAgain):
        # A server that is proven stateless is never offered initialize (ERA-07).
        assert isinstance(verdict, Refused)
    else:
        assert verdict == first


def test_a_second_refusal_of_the_stateless_era_tells_why_it_is_hopeless() -> None:
    assert judge(unsupported(MODERN), again=True) == Refused(
        f"the server names {MODERN} as supported and refuses it"
    )
    assert judge(refused(-32021, None, "need \x1b[2J"), again=True) == Refused(
        "the server refused server/discover: [-32021] need \\x1b[2J"
    )


def test_the_terms_are_what_the_server_said() -> None:
    verdict = judge(
        discovered(
            MODERN,
            capabilities={"tools": {"listChanged": True}, "x": 1},
            instructions="Use add for sums.",
            _meta={"io.modelcontextprotocol/serverInfo": {"name": "calc", "version": "2.0"}},
            serverInfo={"name": "not this one"},
        ),
        again=False,
    )
    assert verdict == Speak(
        Terms(
            version=MODERN,
            capabilities={"tools": {"listChanged": True}, "x": 1},
            info={"name": "calc", "version": "2.0"},
            instructions="Use add for sums.",
        )
    )


def test_a_stray_server_info_in_the_body_counts_if_there_is_no_other() -> None:
    for meta in (None, {}, 5, {"io.modelcontextprotocol/serverInfo": None}):
        verdict = judge(discovered(MODERN, serverInfo={"name": "x"}, _meta=meta), again=False)
        assert isinstance(verdict, Speak)
        assert verdict.terms.info == {"name": "x"}


@pytest.mark.parametrize("odd", [None, 5, "text", [], True])
def test_odd_members_beside_the_versions_cost_nothing(odd: Any) -> None:
    members = {"capabilities": odd, "serverInfo": odd, "_meta": odd}
    verdict = judge(discovered(MODERN, **members, resultType="complete"), again=False)
    assert verdict == spoken()
    told = judge(discovered(MODERN, instructions=[odd]), again=False)
    assert told == spoken()


def test_what_a_server_names_is_shown_short_and_harmless() -> None:
    verdict = judge(discovered(*(f"v{i}\x1b" + "x" * 100 for i in range(50))), again=False)
    assert isinstance(verdict, Refused)
    assert "\x1b" not in verdict.problem
    assert len(verdict.problem) < 1000
    assert verdict.problem.startswith("no common protocol version: the server speaks v0\\x1bxxx")


def test_data_that_cannot_be_read_is_no_reason_to_fail() -> None:
    for data in (b'{"supported":1e999}', b"[" * 5000 + b"]" * 5000):
        outcome = Refusal(1, -32022, "no", Raw(data))
        assert judge(outcome, again=False) == no_common("none")
        assert judge(Refusal(1, -32601, "no", Raw(data)), again=False) == Shake(NEWEST_OLD)
    bad = Refusal(1, -32022, "no", Raw(b'{"supported":["\xff","2026-07-28"]}'))
    assert judge(bad, again=False) == ProbeAgain(MODERN)


@pytest.mark.parametrize("depth", [*range(900, 1010, 7), 991, 992, 993])
def test_versions_nested_deeply_are_a_verdict_like_any_other(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    for outcome in (
        Answer(1, Raw(b'{"supportedVersions":[' + deep + b"]}")),
        Refusal(1, -32022, "no", Raw(b'{"supported":[' + deep + b"]}")),
    ):
        assert isinstance(judge(outcome, again=False), Refused | Shake)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from([MODERN, "2024-11-05"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["supportedVersions", "supported", "capabilities", "_meta"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@quick
@given(JSON, st.sampled_from([-32020, -32021, -32022, -32601, 0]), st.booleans())
def test_whatever_comes_back_there_is_a_verdict(value: Any, code: int, again: bool) -> None:
    assert isinstance(judge(result(value), again=again), Verdict)
    verdict = judge(refused(code, value), again=again)
    assert isinstance(verdict, Verdict)
    if again:
        assert not isinstance(verdict, ProbeAgain)
