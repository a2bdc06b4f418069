"""Openings with a scripted server: which requests are sent in which order, and what is agreed."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from tests.connection.openings import LATEST, STATELESS, discovered, initialized, opening

# -- the two eras --------------------------------------------------------------------------


async def test_an_answered_probe_opens_a_stateless_conversation() -> None:
    async with opening() as run:
        probe = await run.next("server/discover")
        assert probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == STATELESS
        run.peer.answer(probe, **discovered())
        assert await run.ended() is None
        session = run.connection.session
        assert (session.state, session.era.name, session.era.version) == (
            "open",
            "stateless",
            STATELESS,
        )
        assert session.terms is not None
        assert session.terms.capabilities == {"tools": {}}
        assert session.terms.info == {"name": "scripted"}
        await run.peer.quiet()
        assert run.sent == ["server/discover"], "there is no handshake in this era"


async def test_a_refused_probe_leads_to_a_handshake() -> None:
    async with opening() as run:
        run.peer.refuse(await run.next("server/discover"), -32601, "Method not found")
        initialize = await run.next("initialize")
        assert initialize["params"] == {
            "protocolVersion": LATEST,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        await run.peer.quiet()
        assert run.sent == ["server/discover", "initialize"], "nothing before it is answered"
        run.peer.answer(initialize, **initialized("2025-06-18"))
        assert await run.ended() is None
        await run.next("notifications/initialized")
        session = run.connection.session
        assert (session.state, session.era.name, session.era.version) == (
            "open",
            "handshake",
            "2025-06-18",
        )
        assert session.terms is not None
        assert session.terms.instructions == "be kind"
        assert run.sent == ["server/discover", "initialize", "notifications/initialized"]


@pytest.mark.parametrize("code", [-32601, -32600, -32602, -32603, -32000, 0, 1])
async def test_any_other_refusal_of_the_probe_proves_the_handshake_era(code: int) -> None:
    async with opening() as run:
        run.peer.refuse(await run.next("server/discover"), code, "what is that?")
        run.peer.answer(await run.next("initialize"), **initialized())
        assert await run.ended() is None
        assert run.connection.session.era.name == "handshake"


@pytest.mark.parametrize(
    ("era", "offered"), [("handshake", LATEST), ("2024-11-05", "2024-11-05"), (LATEST, LATEST)]
)
async def test_who_says_the_era_spares_the_probe(era: str, offered: str) -> None:
    async with opening(era) as run:
        initialize = await run.next("initialize")
        assert initialize["params"]["protocolVersion"] == offered
        run.peer.answer(initialize, **initialized(offered))
        assert await run.ended() is None
        await run.next("notifications/initialized")
        assert run.sent == ["initialize", "notifications/initialized"]


async def test_who_insists_on_stateless_gets_no_handshake() -> None:
    async with opening("stateless") as run:
        run.peer.refuse(await run.next("server/discover"), -32601, "Method not found")
        problem = await run.failed()
        assert problem.final
        assert str(problem) == (
            'server "peer": the server does not know server/discover, so it is not of the era '
            "'stateless'; set era=\"auto\""
        )
        assert run.sent == ["server/discover"]


# -- silence, and answers that come late ---------------------------------------------------


async def test_a_silent_server_is_offered_a_handshake_and_the_probe_is_not_cancelled() -> None:
    async with opening(probe_time=0.02) as run:
        run.peer.answer(await run.next("initialize"), **initialized())
        assert await run.ended() is None
        await run.next("notifications/initialized")
        assert run.sent == ["server/discover", "initialize", "notifications/initialized"]
        run.peer.answer((await run.next("server/discover"))["id"], **discovered())
        await run.peer.quiet()
        assert run.connection.session.era.name == "handshake", "what was agreed on stays"
        assert run.connection.inflight.late == 1
        assert run.connection.noise.count == 0


@pytest.mark.parametrize("initialize_answer", ["none", "refused", "refused in one turn"])
async def test_a_late_answer_to_the_probe_settles_it(initialize_answer: str) -> None:
    async with opening(probe_time=0.02) as run:
        initialize = await run.next("initialize")
        probe = await run.next("server/discover")
        if initialize_answer == "refused in one turn":
            run.peer.refuse(initialize, -32601, "no such method")
        run.peer.answer(probe, **discovered())
        assert await run.ended() is None
        assert run.connection.session.era.name == "stateless"
        if initialize_answer == "refused":
            run.peer.refuse(initialize, -32601, "no such method")
        await run.peer.quiet()
        assert run.sent == ["server/discover", "initialize"], "no initialized, no cancel"
        assert run.connection.noise.count == 0


async def test_a_late_refusal_of_the_probe_changes_nothing() -> None:
    async with opening(probe_time=0.02) as run:
        initialize = await run.next("initialize")
        run.peer.refuse(await run.next("server/discover"), -32601, "Method not found")
        await run.peer.quiet()
        assert not run.done
        run.peer.answer(initialize, **initialized())
        assert await run.ended() is None
        assert run.connection.session.era.name == "handshake"


async def test_who_insists_on_stateless_waits_longer_than_a_probe_may_take() -> None:
    async with opening("stateless", probe_time=0.02) as run:
        probe = await run.next("server/discover")
        await anyio.sleep(0.06)  # the time of the probe is over, and nothing else is tried
        assert not run.done
        assert "initialize" not in run.sent
        run.peer.answer(probe, **discovered())
        assert await run.ended() is None
        assert run.connection.session.era.name == "stateless"


# -- versions ------------------------------------------------------------------------------


async def test_a_probe_refused_for_its_version_is_repeated_once() -> None:
    async with opening() as run:
        run.peer.refuse(
            await run.next("server/discover"), -32022, "version", data={"supported": [STATELESS]}
        )
        run.peer.answer(await run.next("server/discover", 2), **discovered())
        assert await run.ended() is None
        assert run.connection.session.era.name == "stateless"
        assert run.sent == ["server/discover"] * 2


async def test_a_server_that_refuses_what_it_names_is_left() -> None:
    async with opening() as run:
        for count in (1, 2):
            run.peer.refuse(
                await run.next("server/discover", count),
                -32022,
                "v",
                data={"supported": [STATELESS]},
            )
        problem = await run.failed()
        assert problem.final
        assert f"the server names {STATELESS} as supported and refuses it" in str(problem)
        assert run.sent == ["server/discover"] * 2


async def test_a_probe_that_names_a_handshake_version_is_followed_by_its_offer() -> None:
    async with opening() as run:
        data = {"supported": ["2024-11-05", "2025-03-26"]}
        run.peer.refuse(await run.next("server/discover"), -32022, "version", data=data)
        initialize = await run.next("initialize")
        assert initialize["params"]["protocolVersion"] == "2025-03-26"
        run.peer.answer(initialize, **initialized("2025-03-26"))
        assert await run.ended() is None


async def test_a_server_of_unknown_versions_is_left() -> None:
    async with opening() as run:
        run.peer.answer(await run.next("server/discover"), **discovered("2099-01-01"))
        problem = await run.failed()
        assert problem.final
        assert "no common protocol version: the server speaks 2099-01-01; we speak " in str(problem)
        assert "initialize" not in run.sent


@pytest.mark.parametrize("member", ["expected", "supported", "supportedVersions"])
async def test_a_version_named_by_a_refused_initialize_is_offered_once(member: str) -> None:
    async with opening("handshake") as run:
        data = {member: "2024-11-05" if member == "expected" else ["2024-11-05"]}
        run.peer.refuse(await run.next("initialize"), -32602, "Unsupported version", data=data)
        second = await run.next("initialize", 2)
        assert second["params"]["protocolVersion"] == "2024-11-05"
        run.peer.answer(second, **initialized("2024-11-05"))
        assert await run.ended() is None
        assert run.connection.session.era.version == "2024-11-05"


async def test_there_is_no_third_offer() -> None:
    async with opening("handshake") as run:
        for count, version in ((1, "2024-11-05"), (2, "2025-03-26")):
            run.peer.refuse(
                await run.next("initialize", count), -32602, "no", data={"expected": version}
            )
        problem = await run.failed()
        assert problem.final
        assert "[-32602] no (it speaks 2025-03-26)" in str(problem)
        assert run.sent == ["initialize"] * 2


@pytest.mark.parametrize("version", ["2099-01-01", None, 17, STATELESS])
async def test_a_server_that_wants_another_version_is_left(version: Any) -> None:
    async with opening("handshake") as run:
        run.peer.answer(
            await run.next("initialize"), **{**initialized(), "protocolVersion": version}
        )
        problem = await run.failed()
        assert problem.final
        assert f"the server wants protocol version {version}; offered was {LATEST}" in str(problem)
        await run.peer.quiet()
        assert run.sent == ["initialize"], "what was not agreed on is not confirmed"


async def test_an_initialize_refused_as_stateless_is_followed_by_one_more_probe() -> None:
    async with opening() as run:
        run.peer.refuse(await run.next("server/discover"), -32601, "busy starting")
        data = {"supported": [STATELESS], "requested": LATEST}
        run.peer.refuse(await run.next("initialize"), -32022, "stateless", data=data)
        run.peer.answer(await run.next("server/discover", 2), **discovered())
        assert await run.ended() is None
        assert run.connection.session.era.name == "stateless"
        assert run.sent == ["server/discover", "initialize", "server/discover"]


async def test_the_probe_after_a_refused_initialize_is_the_last() -> None:
    async with opening() as run:
        data = {"supported": [STATELESS]}
        run.peer.refuse(await run.next("server/discover"), -32601, "no")
        run.peer.refuse(await run.next("initialize"), -32022, "no", data=data)
        run.peer.refuse(await run.next("server/discover", 2), -32022, "no", data=data)
        problem = await run.failed()
        assert problem.final
        assert f"the server names {STATELESS} as supported and refuses it" in str(problem)
        assert run.sent == ["server/discover", "initialize", "server/discover"]


async def test_a_server_that_sends_us_in_circles_is_left() -> None:
    async with opening() as run:
        data = {"supported": [STATELESS]}
        for count in (1, 2):
            run.peer.refuse(await run.next("server/discover", count), -32601, "no")
            run.peer.refuse(await run.next("initialize", count), -32022, "no", data=data)
        problem = await run.failed()
        assert problem.final
        assert "the server speaks only the stateless era" in str(problem)


async def test_who_insists_on_a_handshake_is_told_that_the_server_is_stateless() -> None:
    async with opening("handshake") as run:
        data = {"supported": [STATELESS]}
        run.peer.refuse(await run.next("initialize"), -32022, "stateless", data=data)
        problem = await run.failed()
        assert problem.final
        assert 'set era="auto" to let it be asked' in str(problem)
        assert run.sent == ["initialize"]
