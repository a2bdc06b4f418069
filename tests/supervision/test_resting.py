"""Good ends, and what each policy makes of them: rest, run again, or never more."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import Manager, RestartPolicy, RestartsExhausted, Server, ServerDied
from mcpclient.ground.exits import Exit
from tests.conftest import spec
from tests.supervision.helpers import echo, in_state, reborn


async def end(server: Server, code: int) -> ServerDied:
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("exit", {"code": code})
    return caught.value


async def test_a_server_that_exits_with_0_rests_until_the_next_call(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    assert (await end(server, 0)).exit == Exit(code=0)
    await in_state(server, "idle")
    await anyio.sleep(0.05)
    assert (server.state, server.generation, server.pid) == ("idle", 1, None)
    assert await echo(server) == "hello"
    assert (server.state, server.generation) == ("up", 2)
    assert manager.status().servers[0].restarts == 0, "a call started it, not the policy"


async def test_a_server_may_rest_as_often_as_it_likes(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=RestartPolicy(burst=1)))
    for generation in range(1, 6):
        assert await echo(server) == "hello"
        assert server.generation == generation
        await end(server, 0)
    assert await echo(server) == "hello"
    assert server.state == "up"


@pytest.mark.parametrize("code", [1, 0])
async def test_always_means_after_any_end(manager: Manager, code: int) -> None:
    policy = RestartPolicy(when="always", first=0.01, jitter=0.0)
    server = await manager.add("good", spec("good_handshake", restart=policy))
    await server.start()
    await end(server, code)
    await reborn(server, 2)
    assert await echo(server) == "hello"


async def test_never_means_not_after_a_crash(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=RestartPolicy(when="never")))
    await server.start()
    assert (await end(server, 5)).exit == Exit(code=5)
    await in_state(server, "failed")
    with pytest.raises(RestartsExhausted) as caught:
        await echo(server)
    assert "RestartPolicy.when is 'never'" in str(caught.value)
    assert "exit code 5" in str(caught.value)
    assert server.generation == 1
    await server.start()
    assert (server.state, server.generation) == ("up", 2)


async def test_never_leaves_a_good_end_to_the_next_call(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=RestartPolicy(when="never")))
    await server.start()
    await end(server, 0)
    await in_state(server, "idle")
    assert await echo(server) == "hello"
    assert server.generation == 2


async def test_a_server_that_exits_with_0_before_it_is_up_has_crashed(manager: Manager) -> None:
    policy = RestartPolicy(burst=1, first=0.01, jitter=0.0)
    server = await manager.add("fake", spec("fake", "exit-after-init", restart=policy))
    # It may be up for a moment, which is a good end; or it is seen to end while it opens.
    with pytest.raises((RestartsExhausted, ServerDied)) as caught:
        await echo(server)
    if type(caught.value) is RestartsExhausted:
        assert {one.phase for one in caught.value.incidents} == {"opening"}
        assert {one.exit for one in caught.value.incidents} == {Exit(code=0)}
