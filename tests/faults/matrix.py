"""What a row of the matrix is made of: a misdeed, what is done, and what is owed for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Struct

from mcpclient import Manager, McpClientError, Server, ServerSpec, Timeouts
from tests.conftest import alive, eventually, spec

# Long where something must happen, short where something must not.
IMPATIENT = Timeouts(open=10, probe=5, call=10, write=0.2, eof=0.2, term=0.2)


class Scene(Struct):
    """What an act works with.

    Attributes:
        manager: The manager of the sinner and of a second server.
        server: The sinner.
        tmp_path: A directory of the test's own.
        notes: What an act leaves for its check.
    """

    manager: Manager
    server: Server
    tmp_path: Path
    notes: dict[str, Any]

    async def call(self, tool: str = "sin", *, timeout: float = 10, **arguments: Any) -> str:
        """Call a tool of the sinner."""
        return (await self.server.invoke_tool(tool, arguments, timeout=timeout)).text

    async def in_flight(self) -> None:
        """Wait until a call is in flight, without a pause: it may be a short one."""
        with anyio.fail_after(10):
            while not self.server.status().in_flight:
                await anyio.sleep(0)

    async def pid(self) -> int:
        """Start the sinner and return its process."""
        await self.server.start()
        assert self.server.pid is not None
        return self.server.pid


Act = Callable[[Scene], Awaitable[Any]]


class Fault(Struct, frozen=True, kw_only=True):
    """One misdeed and what is owed for it.

    Attributes:
        name: The misdeed, in the words of the docs.
        server: The sinner, or a function that makes it in a directory.
        act: What is done to it.
        error: What the act raises, or None.
        says: Parts of the error's text.
        gives: What the act returns, if no error.
        after: The server's state in the end.
        life: The number of its life in the end.
        incident: A part of the last incident's text; empty if there is none.
        deaths: How many incidents there are.
        also: What else is checked in the end.
        cases: Cases of the field reports that the row shows.
    """

    name: str
    server: ServerSpec | Callable[[Path], ServerSpec]
    act: Act
    error: type[McpClientError] | None = None
    says: tuple[str, ...] = ()
    gives: Any = None
    after: str = "up"
    life: int = 1
    incident: str = ""
    deaths: int | None = None
    also: Act | None = None
    cases: tuple[str, ...] = ()

    @property
    def incidents(self) -> int:
        """How many incidents there are in the end."""
        return self.deaths if self.deaths is not None else int(bool(self.incident))


def sinner(name: str, *args: object, **options: Any) -> ServerSpec:
    """Return the spec of a fixture server that is given little time."""
    options.setdefault("timeouts", IMPATIENT)
    return spec(name, *args, **options)


# -- acts ----------------------------------------------------------------------------------


def call(tool: str = "sin", *, timeout: float = 10, **arguments: Any) -> Act:
    """Call a tool."""

    async def act(scene: Scene) -> str:
        await scene.server.start()  # its time is not the call's
        return await scene.call(tool, timeout=timeout, **arguments)

    return act


def then_echo(tool: str = "sin", *, timeout: float = 10, **arguments: Any) -> Act:
    """Call a tool, then see that the server still answers others."""

    async def act(scene: Scene) -> str:
        await scene.call(tool, timeout=timeout, **arguments)
        return await scene.call("echo", text="still here")

    return act


async def opening(scene: Scene) -> None:
    """Start the server."""
    await scene.server.start(timeout=10)


async def stopping(scene: Scene) -> None:
    """Stop a server that is up; no process may be left."""
    pid = await scene.pid()
    await scene.server.stop()
    assert not alive(pid)


def killed(number: int = signal.SIGKILL) -> Act:
    """Signal the idle server."""

    async def act(scene: Scene) -> None:
        os.kill(await scene.pid(), number)
        await eventually(lambda: scene.server.incidents)

    return act


async def echoes(scene: Scene) -> None:
    """Check that the server, whichever life it is in, answers."""
    assert await scene.call("echo", text="as ever") == "as ever"


def counted(**counts: int) -> Act:
    """Check numbers of the server's status."""

    async def check(scene: Scene) -> None:
        status = scene.server.status()
        assert {name: getattr(status, name) for name in counts} == counts

    return check


# -- the test of a row ---------------------------------------------------------------------


async def play(fault: Fault, manager: Manager, tmp_path: Path) -> None:
    """Do what a row says, beside a second server whose calls go on, and compare."""
    made = fault.server(tmp_path) if callable(fault.server) else fault.server
    witness = await manager.add("witness", spec("good_handshake"))
    scene = Scene(manager, await manager.add("sinner", made), tmp_path, {})
    server = scene.server
    await witness.start()
    async with anyio.create_task_group() as group:
        calls = Calls(witness)
        group.start_soon(calls.go_on)
        await eventually(lambda: calls.ended)
        before = calls.ended
        await _outcome(fault, scene)
        await eventually(
            lambda: (server.state, server.generation) == (fault.after, fault.life),
        )
        await eventually(lambda: calls.ended > before)
        group.cancel_scope.cancel()
    found = server.incidents
    assert len(found) == fault.incidents, [str(one) for one in found]
    if fault.incident:
        assert fault.incident in str(found[-1])
    if fault.also is not None:
        await fault.also(scene)
    assert (witness.state, witness.generation, witness.incidents) == ("up", 1, [])
    status = witness.status()
    assert (status.stray, status.noise, status.in_flight) == (0, 0, 0)


async def _outcome(fault: Fault, scene: Scene) -> None:
    if fault.error is None:
        assert await fault.act(scene) == fault.gives
        return
    with pytest.raises(McpClientError) as caught:
        await fault.act(scene)
    assert type(caught.value) is fault.error, repr(caught.value)
    for part in fault.says:
        assert part in str(caught.value)


class Calls:
    """Calls to the second server, one after the other, each with its own answer."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.ended = 0

    async def go_on(self) -> None:
        """Call until cancelled."""
        while True:
            text = str(self.ended)
            result = await self._server.invoke_tool("echo", {"text": text}, timeout=5)
            assert result.text == text
            self.ended += 1
            await anyio.sleep(0.002)
