"""The era of initialize: what its answer means, and how requests are stamped and results read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.protocol.eras import Identity, Refused, Terms
from mcpclient.protocol.eras.handshake import (
    Agreed,
    Handshake,
    Offer,
    ProvenStateless,
    Verdict,
    initialize,
    judge,
)
from mcpclient.protocol.events import Answer, Broken, Refusal
from mcpclient.protocol.versions import HANDSHAKE
from tests.protocol import quick

NEWEST = "2025-11-25"
POSSIBLE = "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"


def answered(value: Any) -> Answer:
    """Return the outcome that is a result."""
    return Answer(1, Raw(json.dumps(value).encode()))


def refused(code: int, data: Any = None, message: str = "no") -> Refusal:
    """Return the outcome that is an error."""
    return Refusal(1, code, message, Raw(b"" if data is None else json.dumps(data).encode()))


# -- the answer to initialize --------------------------------------------------------------


@pytest.mark.parametrize("version", HANDSHAKE)
def test_any_version_we_speak_is_agreed_on_whatever_was_offered(version: str) -> None:
    outcome = answered({"protocolVersion": version, "capabilities": {}, "serverInfo": {}})
    for offered in HANDSHAKE:
        verdict = judge(outcome, offered, insist=False)
        assert verdict == Agreed(Terms(version=version))


def test_the_terms_are_what_the_server_said() -> None:
    verdict = judge(
        answered(
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                "serverInfo": {"name": "old", "version": "1", "more": [1]},
                "instructions": "hi",
                "unknown": 1,
            }
        ),
        NEWEST,
        insist=False,
    )
    assert verdict == Agreed(
        Terms(
            version="2025-06-18",
            capabilities={"tools": {"listChanged": True}, "logging": {}},
            info={"name": "old", "version": "1", "more": [1]},
            instructions="hi",
        )
    )


@pytest.mark.parametrize("odd", [None, 5, "text", [], True])
def test_odd_members_beside_the_version_cost_nothing(odd: Any) -> None:
    wire = {"protocolVersion": NEWEST, "capabilities": odd, "serverInfo": odd}
    assert judge(answered(wire), NEWEST, insist=False) == Agreed(Terms(version=NEWEST))
    told = judge(answered({"protocolVersion": NEWEST, "instructions": [odd]}), NEWEST, insist=True)
    assert told == Agreed(Terms(version=NEWEST))


@pytest.mark.parametrize(
    ("wire", "shown"),
    [
        ({"protocolVersion": "2099-01-01"}, "2099-01-01"),
        ({"protocolVersion": "1999-01-01"}, "1999-01-01"),
        ({"protocolVersion": "2026-07-28"}, "2026-07-28"),
        ({"protocolVersion": "2025-11-25 "}, "2025-11-25 "),
        ({"protocolVersion": "x\x1b[2J"}, "x\\x1b[2J"),
        ({"protocolVersion": 20251125}, "20251125"),
        ({"protocolVersion": None}, "None"),
        ({"protocolVersion": [NEWEST]}, "that is no text"),
        ({}, "None"),
    ],
)
def test_a_version_we_do_not_speak_ends_it_and_both_sides_are_named(
    wire: dict[str, Any], shown: str
) -> None:
    for insist in (False, True):
        assert judge(answered(wire), "2025-06-18", insist=insist) == Refused(
            f"the server wants protocol version {shown}; "
            f"offered was 2025-06-18, possible are {POSSIBLE}"
        )


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_a_result_that_is_no_object_ends_it(value: Any) -> None:
    verdict = judge(answered(value), NEWEST, insist=False)
    assert isinstance(verdict, Refused)
    assert verdict.problem.startswith("the initialize result has an unexpected shape: ")


def test_an_answer_that_cannot_be_read_ends_it() -> None:
    assert judge(Broken(1, "broken JSON"), NEWEST, insist=False) == Refused(
        "the answer to initialize cannot be read: broken JSON"
    )


@pytest.mark.parametrize("code", [-32602, -32600, -32000, 0])
@pytest.mark.parametrize(
    "data",
    [
        {"supported": ["2024-11-05"], "requested": NEWEST},
        {"supported": ["2099-01-01", "2024-11-05"]},
        {"supportedVersions": ["2024-11-05"]},
        {"supported": "2024-11-05"},
        {"expected": "2024-11-05"},
        {"expected": ["2024-11-05"], "supported": None},
    ],
)
def test_a_refusal_that_names_a_version_of_ours_is_followed_by_one_more_offer(
    code: int, data: Any
) -> None:
    assert judge(refused(code, data), NEWEST, insist=False) == Offer("2024-11-05")
    assert judge(refused(code, data), NEWEST, insist=True) == Refused(
        f"the server refused initialize for {NEWEST}: [{code}] no "
        f"(it speaks {', '.join(named(data))})"
    )


def named(data: dict[str, Any]) -> list[str]:
    """Return the versions that an error's data names."""
    found: list[str] = []
    for key in ("supported", "supportedVersions", "expected"):
        value = data.get(key) or []
        found += [value] if isinstance(value, str) else value
    return found


def test_of_several_versions_the_newest_is_offered() -> None:
    data = {"supported": ["2024-11-05", "2025-06-18", "2025-03-26"]}
    assert judge(refused(-32602, data), NEWEST, insist=False) == Offer("2025-06-18")


@pytest.mark.parametrize(
    "data",
    [None, {}, [], "2024-11-05", {"supported": []}, {"supported": ["2099-01-01"]}, {"expected": 5}],
)
def test_a_refusal_that_names_none_of_ours_ends_it(data: Any) -> None:
    verdict = judge(refused(-32602, data, "bad \x07version"), NEWEST, insist=False)
    assert isinstance(verdict, Refused)
    assert verdict.problem.startswith(
        "the server refused initialize for 2025-11-25: [-32602] bad \\x07version"
    )


def test_a_refusal_that_names_what_was_offered_is_not_asked_the_same_again() -> None:
    verdict = judge(refused(-32602, {"supported": [NEWEST]}), NEWEST, insist=False)
    assert verdict == Refused(
        f"the server refused initialize for {NEWEST}: [-32602] no (it speaks {NEWEST})"
    )


def test_an_unsupported_version_that_names_the_stateless_era_proves_it() -> None:
    for supported in (["2026-07-28"], ["2025-11-25", "2026-07-28"]):
        outcome = refused(-32022, {"supported": supported})
        for insist in (False, True):
            assert judge(outcome, NEWEST, insist=insist) == ProvenStateless()
    # Another code proves nothing, and neither does the code alone.
    assert isinstance(
        judge(refused(-32602, {"supported": ["2026-07-28"]}), NEWEST, insist=False), Refused
    )
    assert isinstance(judge(refused(-32022), NEWEST, insist=False), Refused)
    assert judge(refused(-32022, {"supported": ["2025-03-26"]}), NEWEST, insist=False) == Offer(
        "2025-03-26"
    )


def test_data_that_cannot_be_read_is_no_reason_to_fail() -> None:
    for data in (b"1e999", b"[" * 5000 + b"]" * 5000):
        outcome = Refusal(1, -32602, "no", Raw(data))
        assert judge(outcome, NEWEST, insist=False) == Refused(
            f"the server refused initialize for {NEWEST}: [-32602] no"
        )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(HANDSHAKE),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["protocolVersion", "capabilities", "supported", "expected"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@quick
@given(JSON, st.sampled_from([-32022, -32602, 0]), st.booleans())
def test_whatever_comes_back_there_is_a_verdict_and_no_loop(
    value: Any, code: int, insist: bool
) -> None:
    for outcome in (answered(value), refused(code, value)):
        verdict = judge(outcome, NEWEST, insist=insist)
        assert isinstance(verdict, Verdict)
        assert not (insist and isinstance(verdict, Offer))
        if isinstance(verdict, Offer):
            assert verdict.version in HANDSHAKE
            assert verdict.version != NEWEST


# -- the era's rules -----------------------------------------------------------------------


def test_initialize_says_who_we_are_and_offers_the_version() -> None:
    assert initialize(Identity("mgr", "0.1"), "2025-03-26") == {
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "mgr", "version": "0.1"},
    }


def test_the_server_may_ask_and_be_pinged() -> None:
    era = Handshake("2025-06-18")
    assert (era.name, era.version) == ("handshake", "2025-06-18")
    assert era.server_may_ask is True


def test_params_go_out_as_they_are_with_a_token_if_progress_is_wanted() -> None:
    era = Handshake(NEWEST)
    params = {"name": "a", "_meta": {"k": 1}}
    assert era.stamp(params, None) is params
    assert era.stamp(None, None) is None
    assert era.stamp({}, None) == {}
    assert era.stamp(params, 7) == {"name": "a", "_meta": {"k": 1, "progressToken": 7}}
    assert era.stamp(None, 7) == {"_meta": {"progressToken": 7}}
    assert era.stamp({"_meta": None}, 7) == {"_meta": {"progressToken": 7}}
    assert params == {"name": "a", "_meta": {"k": 1}}


@pytest.mark.parametrize("kind", [b"", b',"resultType":"input_required"', b',"resultType":5'])
def test_every_result_is_final_and_a_stray_kind_means_nothing(kind: bytes) -> None:
    result = Raw(b'{"content":[]' + kind + b',"ttlMs":5}')
    era = Handshake(NEWEST)
    assert era.read("tools/call", result) is result
    assert era.lifetime(result) is None


def test_a_cancellation_names_the_request_and_the_reason() -> None:
    assert Handshake(NEWEST).cancel(7, "user stop") == {"requestId": 7, "reason": "user stop"}
