"""Whether tools keep to the output schemas they declare. Never changes a result, nor loses one.

A tool's schema is known from the server's list of tools, asked for once in a life and again after
a change. It is read when the tool is first called; one that cannot be used costs its own tool's
check and nothing else. What takes longer than a moment is done in a thread.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools#output-schema
"""

from __future__ import annotations

import logging
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec
from anyio import to_thread
from msgspec import Struct

from mcpclient.features import catalog
from mcpclient.ground.errors import (
    CallTimedOut,
    McpClientError,
    OutputInvalid,
    RemoteProtocolError,
    timed_out,
)
from mcpclient.ground.text import printable
from mcpclient.protocol import payload
from mcpclient.protocol.methods import TOOLS_CALL, TOOLS_LIST
from mcpclient.protocol.types import Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cachetools import LRUCache

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.features.resources import Reader
    from mcpclient.features.schemacheck import Schema
    from mcpclient.ground.options import Limits, Timeouts

_NEEDED = ("jsonschema", "regex")
# How long the loop may be held up, and from which size on it is not even tried.
_MOMENT = 0.005
_SMALL = 64 * 1024
# A list that takes longer than this, in seconds, is not waited for by each call anew.
_PATIENCE = 5.0
# How many threads of the host's pool the checks of one server take at the most.
_THREADS = 2

T = TypeVar("T")

_log = logging.getLogger("mcpclient")


def missing() -> list[str]:
    """Return the packages that checking needs and that are not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


class _Known:
    """One list of tools, and what was found out about them."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.sources: dict[str, bytes | None] = {}
        self.told: set[str] = set()
        self.stale = False

    def source(self, name: str) -> bytes | None:
        """Return the output schema of a tool as JSON, or None if it has none.

        Raises:
            RemoteProtocolError: It cannot be read.
        """
        if name not in self.sources:
            tool = self.tools.get(name)
            schema = None if tool is None else tool.output_schema
            self.sources[name] = None if schema is None else msgspec.json.encode(schema)
        return self.sources[name]


class _Verdict(Struct):
    """Why a result is not accepted; ``reason`` as of :class:`OutputInvalid`."""

    reason: str
    problems: list[str]


class Checker:
    """Checks the results of one server's tools, over all its lives."""

    def __init__(self, mode: str, shelf: Reader, timeouts: Timeouts, limits: Limits) -> None:
        """Make a checker that knows nothing yet.

        Args:
            mode: ``warn`` to say what is wrong in the log, ``strict`` to raise it.
            shelf: Where pages of lists are kept.
            timeouts: ``check`` bounds each reading of a schema and each check of a result.
            limits: ``schemas`` bounds what is kept of schemas that were read, ``pages`` a list.
        """
        self._strict = mode == "strict"
        self._shelf = shelf
        self._limit = timeouts.check
        self._most = limits.schemas
        self._pages = limits.pages
        self._known: _Known | None = None
        self._epoch = 0
        # Of those who need the same, one gets it and the others wait.
        self._asking = anyio.Lock()
        self._reading = anyio.Lock()
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._read: LRUCache[bytes, tuple[Schema | _Verdict, int]] | None = None

    def forget(self) -> None:
        """Forget the list: it changed, or the life it was of is over."""
        self._epoch += 1
        if self._known is not None:
            self._known.stale = True
            self._known = None

    async def listing(self, listed: Awaitable[list[Tool]]) -> list[Tool]:
        """Return a list of tools that somebody asks for, and take note of it."""
        epoch = self._epoch
        tools = await listed
        self._learn(tools, epoch)
        return tools

    async def invoke(
        self,
        caller: Caller,
        name: str,
        call: Callable[[Timeout], Awaitable[ToolResult]],
        timeout: Timeout,
    ) -> ToolResult:
        """Return the result of a call, checked.

        Args:
            caller: Who asks for the list of tools, if need be.
            name: The tool.
            call: Makes the call, within the time it is given; a failure is raised, not checked.
            timeout: For list and call together. Checks have a limit of their own.

        Raises:
            OutputInvalid: In strict mode: the result is not as declared, or that cannot be told.
        """
        connection, left = await caller.line(timeout, TOOLS_CALL)
        end = None if left is None else time.monotonic() + left
        known = await self._tools(caller, left)
        result = await call(_until(end))
        verdict = await self._verdict(connection, known, name, result)
        if verdict is not None and known.stale:
            # The tools changed while this one ran: by what they are now it may be right. If that
            # cannot be told, the first verdict stands, and with it the result.
            try:
                known = await self._tools(caller, _until(end))
            except McpClientError:
                pass
            else:
                verdict = await self._verdict(connection, known, name, result)
        if verdict is None:
            return result
        if self._strict:
            raise OutputInvalid(
                verdict.problems, result, reason=verdict.reason, tool=name, server=caller.name
            )
        # What is wrong with a schema is as wrong the next time.
        if verdict.reason in ("value", "missing") or name not in known.told:
            said = "; ".join(printable(one, 500) for one in verdict.problems)
            _log.warning("%s ! tool %s: %s", connection.label, printable(name, 100), said)
        if verdict.reason not in ("value", "missing"):
            known.told.add(name)
        return result

    # -- the list of tools -----------------------------------------------------------------

    def _learn(self, tools: list[Tool], epoch: int) -> _Known:
        known = _Known(tools)
        if epoch == self._epoch:
            self._known = known
        else:
            known.stale = True  # a notice came while it was read
        return known

    async def _tools(self, caller: Caller, left: float | None) -> _Known:
        if self._known is not None:
            return self._known
        if left is not None and not self._strict:
            left /= 2  # where nothing must be checked, time is left for the call itself
        epoch = self._epoch
        known: _Known | None = None
        try:
            with anyio.move_on_after(left):
                known = await self._ask(caller)
            if known is None:
                waited = timed_out(left or 0.0, "for the list of tools, so no tool was called")
                raise CallTimedOut(waited, method=TOOLS_LIST, server=caller.name, maybe_done=False)
        except McpClientError as problem:
            if self._strict:
                raise
            _log.warning("%s ! results are not checked: %s", caller.name, problem)
            if left is not None and left < _PATIENCE and isinstance(problem, CallTimedOut):
                return _Known([])  # the call was in a hurry; the next may not be
            return self._learn([], epoch)
        return known

    async def _ask(self, caller: Caller) -> _Known:
        async with self._asking:
            if self._known is not None:
                return self._known
            epoch = self._epoch
            tools = await catalog.listed(caller, TOOLS_LIST, Tool, None, self._pages, self._shelf)
            return self._learn(tools, epoch)

    # -- results ---------------------------------------------------------------------------

    async def _verdict(
        self, connection: Connection, known: _Known, name: str, result: ToolResult
    ) -> _Verdict | None:
        try:
            source = known.source(name)
        except RemoteProtocolError as problem:
            return _unusable("schema", f"it cannot be read: {problem}")
        if source is None:
            return None
        read = await self._schema(source)
        if isinstance(read, _Verdict):
            return read
        if not result.has_structured:
            return _Verdict(
                "missing", ["it declares an output schema, but gave no structured content"]
            )
        any_value = connection.session.era.structured_any
        if result.size <= _SMALL and _fits(read, result, any_value, min(_MOMENT, self._limit)):
            return None
        return await self._aside(_judged, read, result, any_value, self._limit)

    async def _schema(self, source: bytes) -> Schema | _Verdict:
        if len(source) > self._most:
            return _unusable("bounds", f"it has {len(source)} bytes (Limits.schemas)")
        if self._read is None:
            from cachetools import LRUCache

            self._read = LRUCache(self._most, getsizeof=lambda entry: entry[1])
        async with self._reading:
            entry = self._read.get(source)
            if entry is None:
                entry = await self._aside(_schema_of, source, self._limit), len(source)
                self._read[source] = entry
        return entry[0]

    async def _aside(self, work: Callable[..., T], *facts: Any) -> T:
        """Do work in a thread. It is bounded, and touches nothing that anybody waits for."""
        return await to_thread.run_sync(work, *facts, abandon_on_cancel=True, limiter=self._threads)


def _until(end: float | None) -> float | None:
    return None if end is None else max(end - time.monotonic(), 0.001)


def _schema_of(source: bytes, limit: float) -> Schema | _Verdict:
    from mcpclient.features.schemacheck import Schema, Unusable  # loads the packages

    try:
        return Schema(payload.value(source), limit)
    except RemoteProtocolError as problem:
        return _unusable("schema", f"it cannot be read: {problem}")
    except Unusable as problem:
        return _unusable(problem.reason, problem.problem)


def _fits(schema: Schema, result: ToolResult, any_value: bool, limit: float) -> bool:
    """Return whether a result is seen to fit within a moment."""
    try:
        value = result.structured
        return (any_value or isinstance(value, dict)) and schema.fits(value, limit)
    except McpClientError:
        return False


def _judged(schema: Schema, result: ToolResult, any_value: bool, limit: float) -> _Verdict | None:
    from mcpclient.features.schemacheck import Unusable

    try:
        value = result.structured
        if not any_value and not isinstance(value, dict):
            # What is none by its version counts as not given; the content is there (TOOL-06).
            return _Verdict("missing", ["its structured content must be an object by its version"])
        problems = schema.problems(value, limit)
    except RemoteProtocolError as problem:
        return _Verdict("bounds", [f"its structured content cannot be read: {problem}"])
    except Unusable as problem:
        return _unusable(problem.reason, problem.problem)
    return _Verdict("value", problems) if problems else None


def _unusable(reason: str, problem: str) -> _Verdict:
    return _Verdict(reason, [f"its output schema cannot be used: {problem}"])
