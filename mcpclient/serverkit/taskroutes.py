"""What answers the methods about tasks, of 2025-11-25 and of the extension."""

from __future__ import annotations

from typing import Any

from mcpclient.protocol.eras.handshake import RELATED_KEY
from mcpclient.protocol.extensions import TASKS
from mcpclient.serverkit import asks
from mcpclient.serverkit.common import declared, params_of
from mcpclient.serverkit.errors import INVALID_PARAMS, RpcError
from mcpclient.serverkit.exchange import Exchange
from mcpclient.serverkit.paging import page
from mcpclient.serverkit.tasks import Task


def _task(exchange: Exchange) -> Task:
    return exchange.server.task_table.of(exchange, params_of(exchange).text("taskId"))


async def task_get(exchange: Exchange) -> dict[str, Any]:
    """Tell how a task is (2025-11-25)."""
    declared(exchange, "tasks")
    return _task(exchange).told()


async def task_result(exchange: Exchange) -> dict[str, Any]:
    """Wait until a task is over, and return what came of it. Meanwhile it may ask."""
    declared(exchange, "tasks")
    task = _task(exchange)
    task.attach(exchange)
    try:
        await task.end()
    finally:
        task.detach(exchange)
    if task.error is not None:
        raise RpcError(task.error["code"], task.error["message"], task.error.get("data"))
    if task.result is None:
        raise RpcError(INVALID_PARAMS, f"the task has no result: {task.message or task.status}")
    related = {RELATED_KEY: {"taskId": task.id}}
    return {**task.result, "_meta": {**task.result.get("_meta", {}), **related}}


async def task_cancel(exchange: Exchange) -> dict[str, Any]:
    """Cancel a task (2025-11-25)."""
    declared(exchange, "tasks", "cancel")
    task = _task(exchange)
    if task.ended:
        raise RpcError(INVALID_PARAMS, f"the task is over: {task.status}")
    task.cancel("the client cancelled it")
    return task.told()


async def task_list(exchange: Exchange) -> dict[str, Any]:
    """List the caller's tasks (2025-11-25)."""
    declared(exchange, "tasks", "list")
    params = params_of(exchange)
    cursor = params.value("cursor", str, "") if params.get("cursor") else None
    mine = exchange.server.task_table.all_of(exchange)
    part, following = page(mine, lambda one: one.id, exchange.state.page_size, "tasks", cursor)
    result: dict[str, Any] = {"tasks": [one.told() for one in part]}
    if following is not None:
        result["nextCursor"] = following
    return result


def _with_tasks(exchange: Exchange) -> None:
    declared(exchange, "tasks")
    if TASKS not in (exchange.state.client_capabilities.get("extensions") or {}):
        raise asks.missing(("extensions", TASKS))


async def extension_get(exchange: Exchange) -> dict[str, Any]:
    """Tell all of a task (the extension)."""
    _with_tasks(exchange)
    return _task(exchange).told_as_extension(detailed=True)


async def extension_update(exchange: Exchange) -> dict[str, Any]:
    """Take answers to what a task asks (the extension)."""
    _with_tasks(exchange)
    task = _task(exchange)
    params = params_of(exchange)
    if not params.get("inputResponses"):
        raise RpcError(INVALID_PARAMS, "Missing parameter: inputResponses")
    task.update(params.value("inputResponses", dict[str, Any], {}))
    return {}


async def extension_cancel(exchange: Exchange) -> dict[str, Any]:
    """Cancel a task (the extension); it is no fault if it is over."""
    _with_tasks(exchange)
    _task(exchange).cancel("the client cancelled it")
    return {}
