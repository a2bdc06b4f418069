"""Frames, scopes, run-time components, sessions that are kept, and several requests at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient.serverkit import (
    Frame,
    KitLimits,
    MemoryStore,
    Peer,
    Prompt,
    Resource,
    Server,
    SqliteStore,
    Tool,
)
from mcpclient.serverkit.stores import Store
from tests.conftest import eventually
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, Talk, content


class Guest(Tool):
    """A tool for one session."""

    async def run(self, args: Any, frame: Frame) -> str:
        return "guest"


class GuestPrompt(Prompt):
    """A prompt for one session."""

    async def get_messages(self, args: Any, frame: Frame) -> str:
        return "guest"


class GuestPage(Resource):
    """A resource for one session."""

    uri = "guest://page"

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> str:
        return "guest"


class GuestPages(Resource):
    """A template for one session."""

    uri_template = "guest://{name}"

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> str:
        return variables["name"]


def server(**options: Any) -> Server:
    """Return a server whose tools use the frame."""
    capabilities = {
        "tools": {"list_changed": True},
        "prompts": {"list_changed": True},
        "resources": {"list_changed": True, "subscribe": True},
        "logging": {},
    }
    kit = Server("a", "1", capabilities=capabilities, **options)

    @kit.tool
    async def count(frame: Frame) -> int:
        number = frame.assign_new("count", lambda: 0)
        frame.assign(count=number + 1)
        return number + 1

    @kit.tool
    async def invite(frame: Frame) -> str:
        for component in (Guest, GuestPrompt, GuestPage, GuestPages):
            frame.register(component)
        return "invited"

    @kit.tool
    async def dismiss(frame: Frame) -> list[bool]:
        keys = ("guest", "guest_prompt", "guest://page", "guest_pages")
        kinds = ("tools", "prompts", "resources", "templates")
        gone = [frame.unregister(kind, key) for kind, key in zip(kinds, keys, strict=True)]
        return [*gone, frame.unregister("tools", "guest")]

    @kit.tool
    async def who(frame: Frame) -> dict[str, Any]:
        return {
            "era": frame.era,
            "version": frame.protocol_version,
            "client": frame.client_info,
            "can": sorted(frame.client_capabilities),
            "headers": dict(frame.headers),
            "remote": frame.remote,
            "subject": frame.subject,
            "scopes": sorted(frame.scopes) if frame.scopes is not None else None,
            "claims": dict(frame.claims),
            "session": frame.session_id,
            "server": frame.server.name,
        }

    return kit


# -- the frame -----------------------------------------------------------------------------


async def test_assigns_last_as_long_as_the_session_and_no_other_sees_them() -> None:
    kit = server()
    async with Talk(kit) as one, Talk(kit) as other:
        assert [await one.text("count") for _ in range(3)] == ["1", "2", "3"]
        assert await other.text("count") == "1"


async def test_in_the_stateless_era_each_request_begins_anew() -> None:
    async with Talk(server(), STATELESS) as talk:
        assert [await talk.text("count") for _ in range(2)] == ["1", "1"]


@pytest.mark.parametrize("version", ERAS)
async def test_a_frame_knows_the_client_the_caller_and_the_request(version: str) -> None:
    peer = Peer(
        headers={"x-trace": "1"},
        remote="127.0.0.1",
        subject="ada",
        scopes=frozenset({"b", "a"}),
        claims={"iss": "here"},
    )
    async with Talk(server(), version, peer=peer, id="s1") as talk:
        found = (await talk.call("who"))["structuredContent"]
    assert found == {
        "era": "handshake" if version == HANDSHAKE else "stateless",
        "version": version,
        "client": {"name": "talk", "version": "1"},
        "can": ["elicitation", "roots", "sampling"],
        "headers": {"x-trace": "1"},
        "remote": "127.0.0.1",
        "subject": "ada",
        "scopes": ["a", "b"],
        "claims": {"iss": "here"},
        "session": "s1",
        "server": "a",
    }


async def test_a_frame_is_saved_and_restored() -> None:
    kit = server()
    async with Talk(kit) as one, Talk(kit) as other:
        await one.call("count")
        await one.result("logging/setLevel", {"level": "error"})
        await one.result("resources/subscribe", {"uri": "x://"})
        one.session.frame().page_size = 3
        saved = one.session.frame().save()
        assert saved == {
            "assigns": {"count": 1},
            "client_capabilities": one.can,
            "client_info": {"name": "talk", "version": "1"},
            "level": "error",
            "page_size": 3,
            "ready": True,
            "subscriptions": ["x://"],
            "version": HANDSHAKE,
        }
        other.session.frame().restore(saved)
        assert await other.text("count") == "2"
        assert other.session.state.subscriptions == {"x://"}
        assert other.session.state.restored


# -- run-time components -------------------------------------------------------------------


async def test_a_session_may_have_components_of_its_own_and_is_told_of_them() -> None:
    kit = server()
    async with Talk(kit) as one, Talk(kit) as other:
        assert await one.text("invite") == "invited"
        changed = [message["method"].split("/")[1] for message in one.sent]
        assert changed == ["tools", "prompts", "resources", "resources"]
        assert await one.text("guest") == "guest"
        for method, params in (
            ("prompts/get", {"name": "guest_prompt"}),
            ("resources/read", {"uri": "guest://page"}),
            ("resources/read", {"uri": "guest://other"}),
        ):
            assert await one.result(method, params)
            assert (await other.error(method, params))["code"] in (-32602, -32002)
        assert (await other.error("tools/call", {"name": "guest"}))["code"] == -32602
        assert other.sent == []
        one.sent.clear()
        assert await one.text("dismiss") == "[true,true,true,true,false]"
        assert len(one.sent) == 4
        assert (await one.error("tools/call", {"name": "guest"}))["code"] == -32602


async def test_what_is_added_to_the_server_is_for_everybody_and_all_are_told() -> None:
    kit = server()
    async with Talk(kit) as one, Talk(kit) as other:
        kit.add(Guest)
        for talk in (one, other):
            assert await talk.text("guest") == "guest"
            assert [m["method"] for m in talk.sent] == ["notifications/tools/list_changed"]
        assert kit.remove("tools", "guest")
        assert not kit.remove("tools", "guest")
        assert len(one.sent) == 2


async def test_who_was_not_promised_notices_or_is_not_ready_gets_none() -> None:
    kit = Server("a", "1", capabilities={"tools": {}})
    async with Talk(kit) as talk:
        kit.add(Guest)
        assert talk.sent == []
    kit = server()
    talk = Talk(kit)
    kit.add(Guest)
    assert talk.sent == []


async def test_in_the_stateless_era_there_is_no_session_to_add_to() -> None:
    async with Talk(server(), STATELESS) as talk:
        found = await talk.call("invite")
        assert content(found) == [
            "register: there is no session in the stateless era; use server.add or server.remove, "
            "which are for everybody"
        ]


# -- scopes --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_scopes_hide_a_component_in_lists_and_refuse_its_use(version: str) -> None:
    kit = Server(
        "a",
        "1",
        components=[
            Guest(scopes=["a", "b"]),
            GuestPrompt(scopes=["a"]),
            GuestPage(scopes=["a"]),
            GuestPages(scopes=["a"]),
        ],
    )
    some, all_of_them = Peer(scopes=frozenset({"b"})), Peer(scopes=frozenset({"a", "b", "c"}))
    lists = (
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    )
    uses: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tools/call", {"name": "guest"}),
        ("prompts/get", {"name": "guest_prompt"}),
        ("resources/read", {"uri": "guest://page"}),
        ("resources/read", {"uri": "guest://other"}),
    )
    async with Talk(kit, version) as talk:
        for method, kind in lists:
            assert (await talk.result(method, peer=some))[kind] == []
            assert len((await talk.result(method, peer=all_of_them))[kind]) == 1
            # Without authorization there is nothing to check.
            assert len((await talk.result(method))[kind]) == 1
        for method, params in uses:
            error = await talk.error(method, params, peer=some)
            assert (error["code"], error["message"]) == (-32010, "insufficient scope: a")
            assert await talk.result(method, params, peer=all_of_them)
        error = await talk.error("tools/call", {"name": "guest"}, peer=some)
        assert error["data"] == {"requiredScopes": ["a", "b"]}


# -- sessions that have a name -------------------------------------------------------------


class Clock:
    """A clock that one may turn."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_an_open_session_is_found_by_its_name_until_it_ends() -> None:
    kit = server()
    async with Talk(kit, id="s1") as talk:
        assert kit.sessions == {"s1": talk.session}
        assert await kit.resume("s1") is talk.session
        assert await kit.resume("s2") is None
        await kit.end(talk.session)
        assert await kit.resume("s1") is None
        assert kit.sessions == {}


async def test_a_session_that_is_idle_for_too_long_is_over() -> None:
    clock = Clock()
    kit = server(idle=60.0, clock=clock)
    async with Talk(kit, id="s1") as one, Talk(kit, id="s2") as two:
        clock.now += 60
        await two.result("ping")
        clock.now += 1
        assert kit.sweep() == [one.session]
        assert (one.session.closed, two.session.closed) == (True, False)
        assert await kit.resume("s1") is None
        assert await kit.resume("s2") is two.session
        clock.now += 61
        assert await kit.resume("s2") is None


async def test_a_session_with_a_request_under_way_is_not_idle() -> None:
    clock = Clock()
    kit = server(idle=60.0, clock=clock)
    release = anyio.Event()

    @kit.tool
    async def hold() -> str:
        await release.wait()
        return "held"

    async with Talk(kit, id="s1") as talk, anyio.create_task_group() as group:
        group.start_soon(lambda: talk.call("hold"))
        await eventually(lambda: talk.session.exchanges)
        clock.now += 1000
        assert kit.sweep() == []
        release.set()


@pytest.mark.parametrize(
    ("verdict", "accepted"),
    [("accept", True), ({"name": "known", "version": "2"}, True), ("reject", False)],
)
async def test_the_hook_decides_about_a_session_that_is_not_there(
    verdict: Any, accepted: bool
) -> None:
    kit = server()
    asked: list[Any] = []

    @kit.hook
    def session_expired(id: str, peer: Peer) -> Any:
        asked.append((id, peer.remote))
        return verdict

    session = await kit.resume("lost", peer=Peer(remote="here"))
    assert asked == [("lost", "here")]
    if not accepted:
        assert session is None
        return
    assert session is not None
    assert session.id == "lost"
    assert session.state.client_info == (verdict if isinstance(verdict, dict) else {})
    # It goes on as if it had been opened.
    found = await kit.handle(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "count"}}, session
    )
    assert found is not None
    assert found["result"]["content"][0]["text"] == "1"


async def test_a_kept_session_goes_on_in_another_process() -> None:
    store = MemoryStore()
    begun: list[bool] = []

    def process() -> Server:
        kit = server(store=store)

        @kit.hook
        async def init(client_info: dict[str, Any], frame: Frame) -> None:
            begun.append(frame.client_info == client_info)
            frame.register(Guest)

        return kit

    async with Talk(process(), id="s1") as talk:
        assert await talk.text("count") == "1"
    other = process()
    session = await other.resume("s1")
    assert session is not None
    assert session.version == HANDSHAKE
    talk.session, talk.server = session, other
    assert await talk.text("count") == "2"
    # Components of one session are code, so the hook adds them again.
    assert await talk.text("guest") == "guest"
    assert begun == [True, True]
    await other.end(session)
    assert await store.active() == []
    assert await process().resume("s1") is None


def stores(tmp_path: Path, clock: Clock) -> list[Store]:
    """Return one of each kind."""
    return [
        MemoryStore(idle=60.0, clock=clock),
        SqliteStore(tmp_path / "sessions.db", idle=60.0, clock=clock),
    ]


@pytest.mark.parametrize("kind", [0, 1])
async def test_a_store_keeps_loads_deletes_touches_and_forgets(tmp_path: Path, kind: int) -> None:
    clock = Clock()
    store = stores(tmp_path, clock)[kind]
    state: dict[str, Any] = {"assigns": {"a": [1, "ü", None]}}
    assert await store.load("a") is None
    await store.save("a", state)
    await store.save("b", {"version": "x"})
    state["assigns"]["a"].append("later")
    assert await store.load("a") == {"assigns": {"a": [1, "ü", None]}}
    assert await store.active() == ["a", "b"]
    clock.now += 40
    await store.touch("a")
    await store.touch("nobody")
    clock.now += 40
    assert await store.active() == ["a"]
    assert await store.load("b") is None
    await store.save("a", {"version": "y"})
    assert await store.load("a") == {"version": "y"}
    await store.delete("a")
    await store.delete("a")
    assert await store.active() == []
    if isinstance(store, SqliteStore):
        store.close()


async def test_two_processes_may_share_a_file(tmp_path: Path) -> None:
    one, other = SqliteStore(tmp_path / "s.db"), SqliteStore(tmp_path / "s.db")
    await one.save("a", {"version": "1"})
    assert await other.load("a") == {"version": "1"}
    await other.save("a", {"version": "2"})
    assert await one.load("a") == {"version": "2"}
    one.close()
    other.close()


async def test_memory_is_bounded_by_what_was_not_used_for_the_longest_time() -> None:
    store = MemoryStore(most=2)
    for id in ("a", "b"):
        await store.save(id, {})
    await store.touch("a")
    await store.save("c", {})
    assert await store.active() == ["a", "c"]


# -- at once -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_several_requests_of_one_session_run_at_once(version: str) -> None:
    kit = server()
    inside: set[str] = set()
    all_in = anyio.Event()

    @kit.tool
    async def meet(name: str) -> str:
        inside.add(name)
        if len(inside) == 3:
            all_in.set()
        await all_in.wait()
        return name

    async with Talk(kit, version) as talk:
        found: list[str] = []

        async def call(name: str) -> None:
            found.append(await talk.text("meet", name=name))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for name in ("a", "b", "c"):
                    group.start_soon(call, name)
    assert sorted(found) == ["a", "b", "c"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("id", [5, "five", '"', "ä"])
async def test_a_cancel_reaches_the_running_tool_and_there_is_no_reply(
    version: str, id: Any
) -> None:
    kit = server()
    ended: list[str] = []

    @kit.tool
    async def forever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")

    async with Talk(kit, version) as talk:
        replies: list[Any] = []
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": "tools/call",
            "params": talk.stamped({"name": "forever"}, {}),
        }
        import msgspec

        [item] = talk.session.receive(msgspec.json.encode(message))

        async def run() -> None:
            with anyio.CancelScope() as scope:
                replies.append(await talk.session.answer(item, cancel=scope.cancel))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await eventually(lambda: talk.session.exchanges)
            # Another id, or another type of id, is another request.
            for other in (6, "5", "x", None, [], {}):
                await talk.notify("notifications/cancelled", {"requestId": other})
            await talk.notify("notifications/cancelled")
            assert not ended
            await talk.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})
        assert ended == ["cancelled"]
        assert replies == []
        assert talk.session.exchanges == {}


async def test_a_tool_that_swallows_the_cancellation_gets_no_reply_either() -> None:
    kit = server()
    entered, release = anyio.Event(), anyio.Event()

    @kit.tool
    async def stubborn() -> str:
        entered.set()
        await release.wait()
        return "here I am"

    async with Talk(kit) as talk:
        replies: list[Any] = []
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stubborn"}}'
        [item] = talk.session.receive(line)

        async def run() -> None:
            replies.append(await talk.session.answer(item, cancel=lambda: None))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await entered.wait()
            await talk.notify("notifications/cancelled", {"requestId": 1})
            release.set()
        assert replies == [None]


async def test_an_id_that_is_in_use_is_refused_and_requests_are_bounded() -> None:
    kit = server(limits=KitLimits(requests=1))
    release = anyio.Event()

    @kit.tool
    async def hold() -> str:
        await release.wait()
        return "held"

    async with Talk(kit) as talk, anyio.create_task_group() as group:
        group.start_soon(lambda: talk.request("tools/call", {"name": "hold"}, id=1))
        await eventually(lambda: talk.session.exchanges)
        error = await talk.error("ping", id=2)
        assert error == {"code": -32000, "message": "more than 1 requests at once"}
        kit.limits = KitLimits()
        error = await talk.error("ping", id=1)
        assert error["message"] == "Invalid request: a request with this id runs"
        release.set()
