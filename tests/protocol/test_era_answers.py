"""What the eras answer about completion and log levels, version by version."""

from __future__ import annotations

import pytest

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol import versions
from mcpclient.protocol.eras import Era, Identity
from mcpclient.protocol.eras.handshake import Handshake
from mcpclient.protocol.eras.stateless import LEVEL_KEY, Stateless

# Whether completions are declared, and whether they may be told of the arguments chosen already.
COMPLETION = {
    "2024-11-05": (False, False),
    "2025-03-26": (True, False),
    "2025-06-18": (True, True),
    "2025-11-25": (True, True),
    "2026-07-28": (True, True),
}


def era(version: str) -> Era:
    """Return the rules of a version."""
    if version in versions.STATELESS:
        return Stateless(version, Identity("test", "0"))
    return Handshake(version)


def test_each_version_says_what_it_knows_of_completion() -> None:
    assert list(COMPLETION) == [*versions.HANDSHAKE, *versions.STATELESS]
    for version, (declares, in_context) in COMPLETION.items():
        assert era(version).declares_completions is declares
        assert era(version).completes_in_context is in_context


def test_a_version_that_is_not_known_yet_knows_nothing() -> None:
    for version in ("", "2099-01-01", "2025-06-19"):
        assert not era(version).declares_completions
        assert not era(version).completes_in_context


@pytest.mark.parametrize("version", versions.HANDSHAKE)
def test_a_level_is_a_request_of_the_handshake_era_for_who_declared_it(version: str) -> None:
    rules = era(version)
    assert rules.log_from("info", {"logging": {}}) == {"level": "info"}
    assert rules.log_from(None, {"logging": {}}) is None
    assert rules.log_from(None, {}) is None
    with pytest.raises(LocalProtocolError, match='did not declare "logging"'):
        rules.log_from("info", {"tools": {}})
    assert rules.stamp({"a": 1}, None) == {"a": 1}


def test_a_level_stands_in_each_stamp_of_the_stateless_era() -> None:
    rules = era("2026-07-28")
    bare = rules.stamp(None, None)
    assert LEVEL_KEY not in bare["_meta"]
    assert rules.log_from("info", {}) is None
    for params in (None, {}, {"a": 1}, {"_meta": {"x": 1}}, {"_meta": {LEVEL_KEY: None}}):
        for token in (None, 0):
            stamped = rules.stamp(params, token)["_meta"]
            own = (params or {}).get("_meta", {})
            assert stamped == {
                **bare["_meta"],
                LEVEL_KEY: "info",
                **own,
                **({} if token is None else {"progressToken": token}),
            }
    assert rules.log_from("error", {}) is None
    assert rules.stamp(None, None)["_meta"][LEVEL_KEY] == "error"
    assert rules.log_from(None, {}) is None
    assert rules.stamp(None, None) == bare


def test_no_request_can_change_who_asks() -> None:
    rules = era("2026-07-28")
    own = dict(rules.stamp(None, None)["_meta"])
    rules.log_from("info", {})
    forged = dict.fromkeys(own, "forged")
    assert rules.stamp({"_meta": forged}, None)["_meta"] == {**own, LEVEL_KEY: "info"}
