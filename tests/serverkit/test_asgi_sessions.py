"""The handshake era over HTTP: sessions, streams, and coming back for what was missed."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from mcpclient.serverkit import Frame, HttpLimits, MemoryStore, Peer, Server, SqliteStore, asgi
from mcpclient.serverkit.http.streams import Desk
from tests.conftest import eventually
from tests.serverkit.talking import HANDSHAKE
from tests.serverkit.test_asgi_posts import Runs, error_of, made
from tests.serverkit.web import EVENTS, Exchange, Visitor, Web

QUICK = HttpLimits(quick=0.0)
PATIENT = HttpLimits(quick=60.0)
OLDER = "2025-06-18"


def asking(runs: Runs | None = None, **options: Any) -> Server:
    """Return a server whose tools ask, close their streams, or tell of changes."""
    server = made(runs, **options)

    @server.tool
    async def ask(frame: Frame) -> str:
        roots = await frame.roots()
        return ", ".join(root.uri for root in roots)

    @server.tool
    async def poll(frame: Frame) -> str:
        frame.progress(1)
        frame.close_stream()
        assert runs is not None
        await runs.go.wait()
        return "polled"

    @server.tool
    async def remember(frame: Frame, word: str) -> str:
        before = frame.assigns.get("word", "nothing")
        frame.assign(word=word)
        return str(before)

    @server.resource("page://one")
    async def page() -> str:
        return ""

    return server


async def text_of(one: Exchange, version: str = HANDSHAKE) -> str:
    """Return the text of a tool's answer."""
    return str((await one.answer("tools/call", version))["result"]["content"][0]["text"])


# -- sessions ------------------------------------------------------------------------------


async def test_each_opening_gives_a_session_of_its_own_with_a_name_nobody_guesses() -> None:
    server = made()
    async with Web(asgi(server)) as web:
        one, two = await web.open(), await web.open()
        assert one.id is not None
        assert one.id != two.id
        assert re.fullmatch(r"[A-Za-z0-9_-]{43}", one.id)
        assert set(server.sessions) == {one.id, two.id}
        assert await text_of(one.tool("echo", {"text": "a"})) == "a"


async def test_an_opening_that_fails_opens_nothing() -> None:
    server = made(versions=["2026-07-28"])
    async with Web(asgi(server)) as web:
        one = await Visitor(web, HANDSHAKE).post("initialize", {"protocolVersion": "x"}).ended()
        assert one.json()["error"]["code"] == -32022
        assert "mcp-session-id" not in one.headers
        assert server.sessions == {}


@pytest.mark.parametrize("method", ["POST", "notice", "answer", "GET", "DELETE"])
async def test_without_a_session_only_an_opening_is_answered(method: str) -> None:
    async with Web(asgi(made())) as web:
        visitor = Visitor(web, HANDSHAKE)
        call: dict[str, Callable[[], Exchange]] = {
            "POST": lambda: visitor.post("tools/list"),
            "notice": lambda: visitor.notify("notifications/initialized"),
            "answer": lambda: visitor.send({"jsonrpc": "2.0", "id": 1, "result": {}}),
            "GET": visitor.get,
            "DELETE": visitor.delete,
        }
        assert await error_of(call[method]()) == (
            400,
            -32600,
            "Bad request: the header Mcp-Session-Id is missing",
        )


@pytest.mark.parametrize("name", ["none", "a b", "é", "x" * 300, ":", "someone:x", ""])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_that_is_not_there_is_not_found(name: str, method: str) -> None:
    async with Web(asgi(made())) as web:
        visitor = Visitor(web, HANDSHAKE)
        visitor.id = name.encode().decode("latin-1").encode("ascii", "replace").decode()
        call: dict[str, Callable[[], Exchange]] = {
            "POST": lambda: visitor.post("tools/list"),
            "GET": visitor.get,
            "DELETE": visitor.delete,
        }
        assert (await error_of(call[method]()))[0] == 404


async def test_a_session_that_its_client_ended_is_not_found_and_its_streams_end() -> None:
    server = made()
    app = asgi(server)
    async with Web(app) as web:
        visitor = await web.open()
        stream = await visitor.get().began()
        assert len(app._sessions._desks) == 1
        one = await visitor.delete().ended()
        assert (one.status, one.body) == (204, b"")
        assert app._sessions._desks == {}
        assert (await stream.ended()).done
        assert server.sessions == {}
        for again in (visitor.delete(), visitor.get(), visitor.post("ping")):
            assert (await again.ended()).status == 404


async def test_a_session_speaks_the_version_that_was_agreed_on() -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        headers = {"mcp-protocol-version": OLDER}
        found = await error_of(visitor.post("ping", headers=headers))
        assert found == (
            400,
            -32600,
            "Bad request: the session speaks 2025-11-25, but the header MCP-Protocol-Version "
            "says '2025-06-18'",
        )
        visitor.version = "2025-03-26"  # it sends no such header; nobody misses it
        assert (await visitor.post("ping").ended()).status == 200


async def test_a_stateless_request_needs_no_session_even_if_it_names_one() -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        one = await web.tool("echo", headers={"mcp-session-id": visitor.id}).ended()
        assert (one.status, "mcp-session-id" in one.headers) == (200, False)
        one = await web.tool("echo", headers={"mcp-session-id": "none"}).ended()
        assert one.status == 200


async def test_somebody_elses_session_is_not_found() -> None:
    async with Web(asgi(made())) as web:
        ann = await web.open(**who("ann"))
        for other in (who("bob"), {}):
            assert (await ann.post("ping", **other).ended()).status == 404
            assert (await ann.delete(**other).ended()).status == 404
        for name in (f"ann:{ann.id}", f":{ann.id}"):
            thief = Visitor(web, HANDSHAKE)
            thief.id = name
            assert (await thief.post("ping").ended()).status == 404
        assert (await ann.post("ping", **who("ann")).ended()).status == 200


def who(subject: str) -> dict[str, Any]:
    """Return a scope in which a host names somebody."""
    from mcpclient.serverkit import Identity

    return {"mcpclient.identity": Identity(subject)}


async def test_the_longest_idle_session_makes_room_for_a_new_one() -> None:
    times = iter(range(1000))
    server = made(clock=lambda: float(next(times)))
    async with Web(asgi(server, limits=HttpLimits(sessions=2))) as web:
        one, two = await web.open(), await web.open()
        assert (await one.post("ping").ended()).status == 200
        three = await web.open()
        assert (await two.post("ping").ended()).status == 404
        assert (await one.post("ping").ended()).status == 200
        assert (await three.post("ping").ended()).status == 200


async def test_if_all_sessions_are_busy_there_is_no_room() -> None:
    async with Web(asgi(made(), limits=HttpLimits(sessions=1))) as web:
        one = await web.open()
        await one.get().began()
        visitor = Visitor(web, HANDSHAKE)
        assert await error_of(visitor.post("initialize", {})) == (
            503,
            -32600,
            "Busy: as many sessions are open as may be",
        )


async def test_a_session_that_was_idle_for_too_long_is_not_found() -> None:
    now = [0.0]
    server = made(idle=60.0, clock=lambda: now[0])
    async with Web(asgi(server)) as web:
        one = await web.open()
        stream = await one.get().began()
        now[0] = 61.0
        assert (await one.post("ping").ended()).status == 404
        assert (await stream.ended()).done


async def test_the_name_of_a_session_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        await visitor.delete().ended()
        await visitor.post("ping").ended()
        assert visitor.id is not None
        assert visitor.id not in caplog.text


# -- several workers -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_workers_that_share_a_store_serve_each_others_sessions(
    kind: str, tmp_path: Path
) -> None:
    shared = MemoryStore()
    stores = [SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")]
    first, second = (asking(store=shared if kind == "memory" else store) for store in stores)
    try:
        async with Web(asgi(first)) as one, Web(asgi(second)) as two:
            visitor = await one.open()
            there = Visitor(two, HANDSHAKE)
            there.id = visitor.id
            assert await text_of(visitor.tool("remember", {"word": "a"})) == "nothing"
            assert await text_of(there.tool("remember", {"word": "b"})) == "a"
            assert await text_of(visitor.tool("remember", {"word": "c"})) == "b"
            assert (await there.delete().ended()).status == 204
            assert (await visitor.post("ping").ended()).status == 404
            assert first.sessions == second.sessions == {}
    finally:
        for store in stores:
            store.close()


# -- answers -------------------------------------------------------------------------------


async def test_a_stream_begins_with_an_event_to_come_back_to() -> None:
    async with Web(asgi(made(), limits=HttpLimits(quick=60.0, retry=0.75))) as web:
        visitor = await web.open()
        one = visitor.tool("steps", {"count": 1}, meta={"progressToken": 1})
        first = await one.event()
        assert (first["retry"], first["data"]) == ("750", "")
        assert re.fullmatch(r"\d+-\d+", first["id"])
        second, third = await one.event(), await one.event()
        assert msgspec.json.decode(second["data"])["method"] == "notifications/progress"
        assert "result" in msgspec.json.decode(third["data"])
        assert len({event["id"] for event in (first, second, third)}) == 3
        assert (await one.ended()).done


async def test_for_older_clients_a_stream_begins_with_a_message() -> None:
    async with Web(asgi(made(), limits=PATIENT)) as web:
        visitor = await web.open(OLDER)
        one = visitor.tool("steps", {"count": 1}, meta={"progressToken": 1})
        first = await one.event()
        assert set(first) == {"id", "data"}
        assert msgspec.json.decode(first["data"])["method"] == "notifications/progress"


async def test_with_streams_alone_the_opening_is_a_stream_too() -> None:
    async with Web(asgi(made(), answers="sse")) as web:
        visitor = await web.open()
        one = visitor.tool("echo")
        assert await text_of(one) == "hi"
        assert one.headers["content-type"] == EVENTS


async def test_a_question_goes_by_the_stream_and_its_answer_is_posted() -> None:
    async with Web(asgi(asking(), limits=PATIENT)) as web:
        visitor = await web.open(can={"roots": {}})
        one = visitor.tool("ask")
        question = await one.message()
        assert question["method"] == "roots/list"
        result = {"roots": [{"uri": "file:///a"}]}
        posted = await visitor.send(
            {"jsonrpc": "2.0", "id": question["id"], "result": result}
        ).ended()
        assert (posted.status, posted.body) == (202, b"")
        assert await text_of(one) == "file:///a"


async def test_without_streams_a_question_goes_by_the_stream_of_the_session() -> None:
    async with Web(asgi(asking(), answers="json")) as web:
        visitor = await web.open(can={"roots": {}})
        stream = visitor.get()
        one = visitor.tool("ask", headers={"accept": "application/json"})
        question = await stream.message()
        result = {"roots": [{"uri": "file:///b"}]}
        await visitor.send({"jsonrpc": "2.0", "id": question["id"], "result": result}).ended()
        await one.ended()
        assert one.json()["result"]["content"][0]["text"] == "file:///b"


async def test_several_messages_may_be_posted_as_one_where_the_version_has_that() -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open("2025-03-26")
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/x"},
            {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
        ]
        found = (await visitor.send(batch).ended()).json()
        assert [(one["id"], "error" in one) for one in found] == [(1, False), (2, True)]
        one = await visitor.send(batch[1:2]).ended()
        assert (one.status, one.body) == (202, b"")
        newer = await web.open()
        assert (await error_of(newer.send(batch)))[:2] == (400, -32600)


async def test_an_empty_body_is_a_parse_error() -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        assert (await error_of(visitor.send(b" \n")))[:2] == (400, -32700)


# -- cancelling, leaving, coming back ------------------------------------------------------


@pytest.mark.parametrize(("limits", "status"), [(QUICK, 200), (PATIENT, 202)])
async def test_a_request_that_its_client_cancels_gets_no_answer(
    limits: HttpLimits, status: int
) -> None:
    runs = Runs()
    async with Web(asgi(made(runs), limits=limits)) as web:
        visitor = await web.open()
        one = visitor.tool("wait")
        await runs.begun.wait()
        told = await visitor.notify("notifications/cancelled", {"requestId": 2}).ended()
        assert told.status == 202
        await one.ended()
        assert runs.cancelled.is_set()
        assert (one.status, one.done, b"result" in one.body) == (status, True, False)


@pytest.mark.parametrize("version", [HANDSHAKE, OLDER, "2024-11-05"])
@pytest.mark.parametrize("limits", [QUICK, PATIENT])
async def test_of_requests_that_are_over_no_more_is_left_than_their_events(
    limits: HttpLimits, version: str
) -> None:
    runs = Runs()
    app = asgi(made(runs), limits=limits)
    async with Web(app) as web:
        visitor = await web.open(version)
        for number in range(2, 7):
            runs.begun = anyio.Event()
            one = visitor.tool("wait")
            await runs.begun.wait()
            if limits is QUICK:
                await one.began()
            await visitor.notify("notifications/cancelled", {"requestId": number}).ended()
            await one.ended()
        [desk] = app._sessions._desks.values()
        kept = [one.kept for one in desk._channels.values() if one is not desk.general]
        assert 0 not in kept
        # The opening too may have been a stream, if there was no time for anything else.
        begun = 5 if limits is QUICK and version == HANDSHAKE else 0
        assert len(kept) in ([begun, begun + 1] if limits is QUICK else [0])


async def test_who_leaves_cancels_nothing_and_comes_back_for_the_answer() -> None:
    runs = Runs()
    async with Web(asgi(made(runs), limits=QUICK)) as web:
        visitor = await web.open()
        one = visitor.tool("wait")
        last = (await one.event())["id"]
        one.leave()
        await one.ended()
        back = await visitor.get(last).began()
        assert not runs.cancelled.is_set()
        runs.go.set()
        assert await text_of(back) == "waited"
        assert (await back.ended()).done
        # Once more, as if that had been lost too.
        assert await text_of(visitor.get(last)) == "waited"


async def test_what_was_said_meanwhile_comes_in_order_and_only_once() -> None:
    runs = Runs()
    async with Web(asgi(asking(runs), limits=PATIENT)) as web:
        visitor = await web.open()
        one = visitor.tool("poll", meta={"progressToken": 7})
        events = [await one.event(), await one.event()]
        assert events[0]["data"] == ""
        # The server closed it, though there is no answer yet.
        assert ((await one.ended()).done, one.body.count(b"id: ")) == (True, 2)
        runs.go.set()
        for last, expected in [(events[0]["id"], 2), (events[1]["id"], 1)]:
            back = await visitor.get(last).ended()
            assert back.body.count(b"id: ") == expected
            assert await text_of(back) == "polled"


async def test_closing_its_stream_does_nothing_where_a_client_could_not_come_back() -> None:
    runs = Runs()
    runs.go.set()
    async with Web(asgi(asking(runs), limits=PATIENT)) as web:
        visitor = await web.open(OLDER)
        assert await text_of(visitor.tool("poll"), OLDER) == "polled"
        one = web.tool("poll")
        assert (await one.answer("tools/call"))["result"]["content"][0]["text"] == "polled"


@pytest.mark.parametrize("last", ["", "x", "1", "99-1", "1-99", "0-1", "-1-1", "١-١", "9" * 50])
async def test_events_that_nobody_knows_cannot_be_come_back_to(last: str) -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        given = last.encode("utf-8").decode("latin-1")
        one = visitor.get("x", headers={"last-event-id": given.encode("ascii", "replace").decode()})
        assert (await error_of(one))[0] == 400


async def test_of_what_is_kept_the_oldest_goes_first() -> None:
    async with Web(asgi(made(), limits=HttpLimits(quick=60.0, events=5))) as web:
        visitor = await web.open()
        one = visitor.tool("steps", {"count": 20}, meta={"progressToken": 1})
        first = (await one.event())["id"]
        assert await text_of(one) == "done"
        assert (await one.ended()).body.count(b"id: ") == 22
        back = await visitor.get(first).ended()
        assert back.body.count(b"id: ") == 5
        assert await text_of(back) == "done"
        for _ in range(3):
            one = visitor.tool("steps", {"count": 5}, meta={"progressToken": 1})
            await one.ended()
        assert (await error_of(visitor.get(first)))[:1] == (400,)


async def test_what_a_reader_has_not_taken_yet_is_not_forgotten() -> None:
    limits = HttpLimits(quick=60.0, events=3, event_bytes=100)
    async with Web(asgi(made(), limits=limits)) as web:
        visitor = await web.open()
        slow = visitor.tool("steps", {"count": 20}, meta={"progressToken": 1}, slow=True)
        await slow.began()
        quick = visitor.tool("steps", {"count": 20}, meta={"progressToken": 2})
        assert await text_of(quick) == "done"
        slow.read_on()
        assert await text_of(slow) == "done"
        assert (await slow.ended()).body.count(b"id: ") == 22


def test_a_desk_keeps_no_more_than_it_may() -> None:
    from mcpclient.protocol.envelope import Outgoing

    desk = Desk(HttpLimits(events=10, event_bytes=500), lambda: 1)
    for number in range(200):
        channel = desk.channel()
        channel.say(Outgoing(b"%d\n" % number, "notifications/x"))
        channel.end(None)
        desk.general.say(Outgoing(b"%d\n" % number, "notifications/x"))
    kept = [desk.general, *(one for one in desk._channels.values() if one is not desk.general)]
    assert sum(one.kept for one in kept) <= 10
    assert len(kept) <= 11


# -- the stream of the session -------------------------------------------------------------


async def test_what_belongs_to_no_request_goes_by_the_stream_of_the_session() -> None:
    server = asking()
    async with Web(asgi(server, limits=HttpLimits(pulse=0.02))) as web:
        visitor, other = await web.open(), await web.open()
        stream = visitor.get()
        assert (await stream.event())["data"] == ""
        await visitor.post("resources/subscribe", {"uri": "page://one"}).ended()
        server.resource_updated("page://one")
        told = await stream.message()
        assert told["method"] == "notifications/resources/updated"
        while (await stream.event()) != {"": "keep-alive"}:
            pass
        silent = other.get()
        await silent.event()
        assert await silent.event() == {"": "keep-alive"}


async def test_what_was_said_while_nobody_listened_is_kept() -> None:
    server = asking()
    async with Web(asgi(server)) as web:
        visitor = await web.open()
        await visitor.post("resources/subscribe", {"uri": "page://one"}).ended()
        server.resource_updated("page://one")
        first = visitor.get()
        told = await first.event()
        while not told["data"]:
            told = await first.event()
        first.leave()
        await first.ended()
        server.resource_updated("page://one")
        second = visitor.get(told["id"])
        assert (await second.message())["method"] == "notifications/resources/updated"
        assert second.body.count(b"id: ") == 1


async def test_a_second_stream_of_the_session_takes_the_place_of_the_first() -> None:
    server = asking()
    async with Web(asgi(server)) as web:
        visitor = await web.open()
        await visitor.post("resources/subscribe", {"uri": "page://one"}).ended()
        first = await visitor.get().began()
        second = await visitor.get().began()
        assert (await first.ended()).done
        server.resource_updated("page://one")
        assert (await second.message())["method"] == "notifications/resources/updated"
        assert b"updated" not in first.body


async def test_a_stream_is_only_for_clients_that_accept_one() -> None:
    async with Web(asgi(made())) as web:
        visitor = await web.open()
        one = visitor.get(headers={"accept": "application/json"})
        assert (await error_of(one))[0] == 406


# -- the hook for sessions that are gone ---------------------------------------------------


async def test_a_session_that_is_gone_may_be_taken_up_again_by_the_hook() -> None:
    server = made()

    @server.hook
    def session_expired(id: str, peer: Peer) -> str:
        return "accept" if id == "known" else "reject"

    async with Web(asgi(server)) as web:
        visitor = Visitor(web, HANDSHAKE)
        visitor.id = "known"
        assert await text_of(visitor.tool("echo")) == "hi"
        visitor.id = "unknown"
        assert (await visitor.tool("echo").ended()).status == 404


# -- the end -------------------------------------------------------------------------------


@pytest.mark.parametrize(("limits", "status"), [(QUICK, 200), (PATIENT, 503)])
async def test_when_the_server_stops_what_runs_is_given_up_and_streams_end(
    limits: HttpLimits, status: int
) -> None:
    runs = Runs()
    app = asgi(made(runs), limits=limits)
    async with Web(app) as web:
        visitor = await web.open()
        stream = await visitor.get().began()
        one = visitor.tool("wait")
        await runs.begun.wait()
        if limits is QUICK:
            await one.began()
        await app.close()
        assert runs.cancelled.is_set()
        assert (await stream.ended()).done
        assert ((await one.ended()).status, one.done) == (status, True)
        assert (await visitor.post("ping").ended()).status == 404


async def test_a_request_whose_client_is_gone_ends_by_itself() -> None:
    runs = Runs()
    server = made(runs)
    async with Web(asgi(server, limits=PATIENT)) as web:
        visitor = await web.open()
        one = visitor.tool("wait")
        await runs.begun.wait()
        one.leave()
        await one.ended()
        [session] = server.sessions.values()
        assert len(session.exchanges) == 1
        runs.go.set()
        await eventually(lambda: not session.exchanges)
        await anyio.lowlevel.checkpoint()
