"""The kind notifications of the field reports, where the matrix alone does not show it."""

from __future__ import annotations

import time

import anyio

from mcpclient import Manager
from tests.cases import case
from tests.conftest import alive, eventually, spec

TOOLS_CHANGED = "notifications/tools/list_changed"


@case("B203")
async def test_two_hundred_notices_of_one_list_are_told_twice(manager: Manager) -> None:
    # The first at once; the others as one, so that the last change is never missed.
    told: list[object] = []
    manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append(params))
    server = await manager.add("flapping", spec("good_handshake"))
    await server.invoke_tool("notify", {"n": 200, "list": "tools"})
    await eventually(lambda: len(told) == 2)
    assert server.status().merged == 198
    # Others have not been waiting for them.
    seen: list[object] = []
    manager.on_notification("notifications/prompts/list_changed", lambda *facts: seen.append(1))
    await server.invoke_tool("notify", {"n": 1, "list": "prompts"})
    await eventually(lambda: seen)
    assert len(told) == 2


@case("B201", "B210")
async def test_a_stop_wins_in_the_middle_of_a_storm(manager: Manager) -> None:
    server = await manager.add("stormy", spec("list_storm", "steady"))
    listed: list[int] = []

    async def again(_server: object, _params: object) -> None:
        listed.append(len(await server.list_tools()))

    manager.on_notification(TOOLS_CHANGED, again)
    await server.start()
    pid = server.pid
    assert pid is not None
    await eventually(lambda: len(listed) >= 2)
    await server.stop()
    assert (server.state, server.incidents) == ("idle", [])
    assert not alive(pid)


@case("B204")
async def test_a_list_that_changes_all_the_time_is_told_at_a_bounded_rate(
    manager: Manager,
) -> None:
    told: list[object] = []
    manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append(params))
    server = await manager.add("restless", spec("list_storm", "steady"))
    begun = time.monotonic()
    await server.start()
    await eventually(lambda: server.status().merged >= 10 and len(told) >= 4)
    # The first at once, and then one in each Timeouts.settle at most.
    assert len(told) <= 1 + (time.monotonic() - begun) / server.spec.timeouts.settle


@case("B198", "B200")
async def test_a_handler_may_wait_for_the_very_server_that_it_hears_of(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake"))
    begun = anyio.Event()
    go_on = anyio.Event()
    found: list[int] = []

    async def look(_server: object, _params: object) -> None:
        begun.set()
        await go_on.wait()
        found.append(len(await server.list_tools()))

    manager.on_notification(TOOLS_CHANGED, look)
    await server.invoke_tool("notify", {"list": "tools"})
    await begun.wait()
    # It is not done, and nobody waits for it.
    assert (await server.invoke_tool("echo", {"text": "meanwhile"})).text == "meanwhile"
    assert found == []
    go_on.set()
    await eventually(lambda: found == [10])


@case("B212")
async def test_progress_that_comes_after_its_answer_is_dropped(manager: Manager) -> None:
    server = await manager.add("late", spec("odd_progress"))
    seen: list[float] = []
    result = await server.invoke_tool(
        "sin", {"when": "after"}, on_progress=lambda done, total, message: seen.append(done)
    )
    assert result.text == "sin"
    assert (await server.invoke_tool("echo", {"text": "next"})).text == "next"
    assert seen == []
    status = server.status()
    assert (status.noise, status.stray, status.late) == (0, 0, 0)


@case("B213")
async def test_progress_that_came_with_the_answer_is_told_before_the_call_returns(
    manager: Manager,
) -> None:
    server = await manager.add("prompt", spec("odd_progress"))
    seen: list[tuple[float, float | None]] = []
    await server.invoke_tool(
        "sin", {}, on_progress=lambda done, total, message: seen.append((done, total))
    )
    assert seen == [(1, 3), (2, 3), (3, 3)]


@case("B209")
async def test_an_error_without_an_id_is_noise(manager: Manager) -> None:
    server = await manager.add("rude", spec("error_without_id"))
    await server.start()
    await server.notify("notifications/anything", {"n": 1})
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.status().noise == 2  # that to notifications/initialized, and that to ours
    assert (server.state, server.generation) == ("up", 1)


@case("B206", "B207")
async def test_a_notice_that_nobody_knows_reaches_who_asked_for_it(manager: Manager) -> None:
    server = await manager.add("odd", spec("odd_notices"))
    seen: list[tuple[str, object]] = []
    for method in ("window/logMessage", "notifications/message"):
        manager.on_notification(
            method, lambda server, params, method=method: seen.append((method, params))
        )
    await server.start()
    seen.clear()
    await server.invoke_tool("echo", {"text": "x"})
    await eventually(lambda: len(seen) >= 2)
    assert seen[-2:] == [
        ("window/logMessage", None),
        ("notifications/message", {"level": "info", "data": {"text": "about to answer"}}),
    ]
