"""Storms of notices that a list changed are told as few, and the last one is never lost."""

from __future__ import annotations

import anyio
from msgspec import Raw

from mcpclient import Manager, loops
from mcpclient.features.calm import Calm
from tests.cases import hasty
from tests.conftest import eventually, spec

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"


def calm(interval: float) -> tuple[Calm, list[tuple[str, bytes]]]:
    """Return one on the loop that runs, and what it lets through."""
    told: list[tuple[str, bytes]] = []
    return Calm(
        loops.current(), interval, lambda method, params: told.append((method, bytes(params)))
    ), told


async def test_the_first_is_told_at_once() -> None:
    one, told = calm(60)
    one.offer(TOOLS, Raw(b"1"))
    assert told == [(TOOLS, b"1")]
    one.flush()
    assert told == [(TOOLS, b"1")]


async def test_those_that_come_too_soon_are_told_as_one_and_it_is_the_last() -> None:
    one, told = calm(0.05)
    for number in range(10):
        one.offer(TOOLS, Raw(b"%d" % number))
    assert told == [(TOOLS, b"0")]
    await eventually(lambda: len(told) == 2)
    assert told[1] == (TOOLS, b"9")
    assert one.merged == 8


async def test_after_a_pause_the_next_one_is_told_at_once_again() -> None:
    one, told = calm(0.02)
    one.offer(TOOLS, Raw(b"1"))
    await anyio.sleep(0.05)
    one.offer(TOOLS, Raw(b"2"))
    assert told == [(TOOLS, b"1"), (TOOLS, b"2")]
    assert one.merged == 0


async def test_each_list_is_calmed_by_itself() -> None:
    one, told = calm(60)
    one.offer(TOOLS, Raw(b"1"))
    one.offer(PROMPTS, Raw(b"2"))
    assert told == [(TOOLS, b"1"), (PROMPTS, b"2")]


async def test_what_is_no_list_is_never_held_back() -> None:
    one, told = calm(60)
    for number in range(5):
        one.offer(UPDATED, Raw(b"%d" % number))
    assert [params for _, params in told] == [b"0", b"1", b"2", b"3", b"4"]


async def test_what_waits_is_told_when_the_server_is_gone() -> None:
    one, told = calm(60)
    for number in range(3):
        one.offer(TOOLS, Raw(b"%d" % number))
        one.offer(PROMPTS, Raw(b"%d" % number))
    one.flush()
    assert told[2:] == [(TOOLS, b"2"), (PROMPTS, b"2")]
    one.flush()
    assert len(told) == 4


async def test_a_change_just_before_a_death_is_told(manager: Manager) -> None:
    told: list[object] = []
    manager.on_notification(TOOLS, lambda server, params: told.append(params))
    one = spec("good_handshake", timeouts=hasty(settle=60))
    server = await manager.add("one", one)
    await server.invoke_tool("notify", {"n": 5, "list": "tools"})
    await eventually(lambda: len(told) == 1)
    await server.stop()
    await eventually(lambda: len(told) == 2)
    assert server.status().merged == 3
