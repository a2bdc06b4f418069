"""What a client owes to streams of notices and to subscriptions, row by row."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, LocalProtocolError, Timeouts
from mcpclient.protocol.versions import HANDSHAKE
from tests.behaviour.bench import Bench
from tests.behaviour.server import STATELESS, Message, Server
from tests.conftest import eventually

KEY = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"

pytestmark = pytest.mark.parametrize("medium", ["memory"])
stateless = pytest.mark.parametrize("version", [STATELESS])


class Declining(Server):
    """Declares nothing that could be subscribed to, and agrees to nothing."""

    @property
    def capabilities(self) -> Message:
        return {"tools": {}, "resources": {}, "prompts": {"listChanged": True}}

    def listen(self, message: Message, params: Message) -> list[Any]:
        params["notifications"].pop("resourceSubscriptions", None)
        return super().listen(message, params)


class Reluctant(Server):
    """Agrees to streams only when it is told to."""

    def listen(self, message: Message, params: Message) -> list[Any]:
        self.later = super().listen(message, params)
        return []

    def tool_echo(self, message: Message, text: str) -> list[Any]:  # type: ignore[override]
        return [*self.later, self.result(message, {"content": []})]


@stateless
async def test_a_notice_of_a_stream_that_is_not_ours_is_dropped(version: str, bench: Bench) -> None:
    bench.lawful = False
    server = await bench.open()
    heard: list[Any] = []
    bench.manager.on_notification(UPDATED, lambda server, params: heard.append(params["_meta"]))
    async with server.subscribe("test://a") as updates:
        [listen] = bench.life.of("subscriptions/listen")
        for id in (999, str(listen["id"]), listen["id"] + 0.5, True):
            params = {"uri": "test://a", "_meta": {KEY: id}}
            await server.invoke_tool("say", {"method": UPDATED, "params": params})
        await server.invoke_tool("touch", {"uri": "test://a"})
        assert (await anext(updates))["_meta"] == {KEY: listen["id"]}
    await eventually(lambda: heard)
    assert heard == [{KEY: listen["id"]}]


async def test_an_update_below_what_is_followed_is_an_update_of_it(bench: Bench) -> None:
    server = await bench.open()
    async with server.subscribe("test://a") as updates:
        await server.read_resource("test://a")
        [*_, listen] = [{}, *bench.life.of("subscriptions/listen")]
        meta = {"_meta": {KEY: listen["id"]}} if bench.stateless else {}
        for uri in ("test://ab", "test://a/b"):
            params = {"uri": uri, **meta}
            await server.invoke_tool("say", {"method": UPDATED, "params": params})
        assert (await anext(updates))["uri"] == "test://a/b"
        assert (await server.read_resource("test://a")).text == "read 2"


@stateless
async def test_a_subscription_is_live_when_it_is_agreed_to_and_not_before(
    version: str, bench: Bench
) -> None:
    bench.peer = Reluctant
    server = await bench.open()
    await server.start()
    entered: list[str] = []

    async def follow() -> None:
        async with server.subscribe("test://a"):
            entered.append("a")

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        await eventually(lambda: bench.life.of("subscriptions/listen"))
        await server.list_prompts()
        assert entered == []
        await server.invoke_tool("echo", {"text": ""})
    assert entered == ["a"]


@stateless
async def test_a_subscription_that_is_not_agreed_to_in_time_is_an_error(
    version: str, bench: Bench
) -> None:
    bench.peer = Reluctant
    server = await bench.open()
    with pytest.raises(CallTimedOut, match="did not agree to the subscription in time"):
        async with server.subscribe("test://a", timeout=0.1):
            pytest.fail("it was not agreed to")


@stateless
async def test_a_stream_that_was_agreed_to_never_times_out(version: str, bench: Bench) -> None:
    server = await bench.open(spec={"timeouts": Timeouts(call=0.1, call_max=0.15)})
    async with server.subscribe("test://a") as updates:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("hold", {"key": "as long as this"}, timeout=0.3)
        await server.invoke_tool("touch", {"uri": "test://a"})
        assert (await anext(updates))["uri"] == "test://a"
        assert len(bench.life.of("subscriptions/listen")) == 1


async def test_what_a_server_does_not_offer_to_tell_is_refused_by_name(bench: Bench) -> None:
    bench.peer = Declining
    server = await bench.open()
    with pytest.raises(LocalProtocolError, match='the server "peer" offers no subscription'):
        async with server.subscribe("test://a"):
            pytest.fail("it was not offered")
    # Where it must be declared, nothing is sent; where asking is legal, it was not agreed to.
    assert len(bench.life.of("subscriptions/listen")) == int(bench.stateless)
    assert bench.life.of("resources/subscribe") == []


@stateless
async def test_only_lists_that_a_server_tells_of_are_asked_for(version: str, bench: Bench) -> None:
    bench.peer = Declining
    server = await bench.open()
    for kind in ("tools", "prompts", "resources"):
        bench.manager.on_notification(f"notifications/{kind}/list_changed", lambda *facts: None)
    await server.start()
    await eventually(lambda: bench.life.agreed())
    [listen] = bench.life.of("subscriptions/listen")
    assert listen["params"]["notifications"] == {"promptsListChanged": True}


@stateless
@pytest.mark.parametrize("how", ["cancellation", "result"])
async def test_either_end_of_a_stream_by_the_server_ends_it(
    version: str, how: str, bench: Bench
) -> None:
    class Ending(Server):
        def tool_close(self, message: Message) -> list[Any]:
            cancel, result, answer = super().tool_close(message)
            return [cancel if how == "cancellation" else result, answer]

    bench.peer = Ending
    server = await bench.open()
    async with server.subscribe("test://a") as updates:
        await server.invoke_tool("close")
        await eventually(lambda: bench.life.agreed() == 2)
        await server.invoke_tool("touch", {"uri": "test://a"})
        assert (await anext(updates))["uri"] == "test://a"
    assert len(bench.life.of("subscriptions/listen")) == 2


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_lists_are_told_of_unasked_in_the_handshake_era(version: str, bench: Bench) -> None:
    server = await bench.open()
    told: list[str] = []

    def tell(kind: str, server: Any, params: Any) -> None:
        told.append(kind)

    for kind in ("tools", "prompts", "resources"):
        method = f"notifications/{kind}/list_changed"
        bench.manager.on_notification(method, partial(tell, kind))
    await server.invoke_tool("grow")
    await eventually(lambda: len(told) == 3)
    assert sorted(told) == ["prompts", "resources", "tools"]
    assert {"subscriptions/listen", "resources/subscribe"}.isdisjoint(bench.life.methods)
