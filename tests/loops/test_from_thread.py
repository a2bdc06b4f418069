"""The one thing that is asked of a loop from another thread, on both backends."""

from __future__ import annotations

import threading

import anyio
import pytest

from mcpclient import loops
from mcpclient.loops.base import Loop
from tests.conftest import eventually


async def test_a_function_that_another_thread_asks_for_is_called_on_the_loops_own() -> None:
    loop = loops.current()
    called: list[int] = []

    def call() -> None:
        called.append(threading.get_ident())

    await anyio.to_thread.run_sync(loop.from_thread, call)
    await eventually(lambda: called)
    assert called == [threading.get_ident()]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_nothing_is_called_and_nothing_raised_once_the_loop_has_ended(backend: str) -> None:
    kept: list[Loop] = []
    called: list[str] = []

    async def main() -> None:
        kept.append(loops.current())

    anyio.run(main, backend=backend)
    kept[0].from_thread(lambda: called.append("too late"))
    assert called == []
