"""Subscriptions of the stateless era: one long request and a filter."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient.serverkit import KitLimits, Prompt, Server, Tool
from tests.conftest import eventually
from tests.serverkit.talking import PREFIX, STATELESS, TASKS, Talk


class Plain(Tool):
    """A tool."""

    async def run(self, args: Any, frame: Any) -> str:
        return "plain"


class Words(Prompt):
    """A prompt."""

    async def get_messages(self, args: Any, frame: Any) -> str:
        return "words"


def server(**options: Any) -> Server:
    """Return a server with some of each."""
    server = Server("a", "1", components=[Plain, Words], **options)

    @server.resource("x://one")
    async def one() -> str:
        return "one"

    return server


async def test_the_acknowledgement_comes_first_and_then_only_what_was_asked_for() -> None:
    kit = server()
    talk = Talk(kit, STATELESS)
    wanted = {
        "toolsListChanged": True,
        "resourceSubscriptions": ["x://one"],
        "promptsListChanged": False,
    }
    async with anyio.create_task_group() as group:
        group.start_soon(
            lambda: talk.request("subscriptions/listen", {"notifications": wanted}, id="sub")
        )
        await eventually(lambda: talk.sent)
        kit.add(Plain(name="new"))
        kit.add(Words(name="new"))
        kit.resource_updated("x://one")
        kit.resource_updated("x://one/below")
        kit.resource_updated("x://other")
        kit.remove("tools", "new")
        kit.remove("tools", "new")
        meta = {f"{PREFIX}subscriptionId": "sub"}
        assert talk.sent == [
            {
                "jsonrpc": "2.0",
                "method": f"notifications/{method}",
                "params": {"_meta": meta, **params},
            }
            for method, params in (
                (
                    "subscriptions/acknowledged",
                    {
                        "notifications": {
                            "toolsListChanged": True,
                            "resourceSubscriptions": ["x://one"],
                        }
                    },
                ),
                ("tools/list_changed", {}),
                ("resources/updated", {"uri": "x://one"}),
                ("resources/updated", {"uri": "x://one/below"}),
                ("tools/list_changed", {}),
            )
        ]
        kit.close()
    assert kit.listeners == set()


async def test_the_server_ends_it_with_a_result_that_names_it() -> None:
    kit = server()
    talk = Talk(kit, STATELESS)
    found: list[Any] = []

    async def listen() -> None:
        found.append(await talk.result("subscriptions/listen", {"notifications": {}}, id=7))

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await eventually(lambda: talk.sent)
        kit.close()
    assert found[0]["_meta"][f"{PREFIX}subscriptionId"] == 7
    assert found[0]["resultType"] == "complete"


async def test_a_listener_whose_task_is_cancelled_is_forgotten() -> None:
    kit = server()
    talk = Talk(kit, STATELESS)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: talk.request("subscriptions/listen", {"notifications": {}}))
        await eventually(lambda: kit.listeners)
        group.cancel_scope.cancel()
    assert kit.listeners == set()


async def test_what_is_not_declared_is_not_acknowledged() -> None:
    kit = server(capabilities={"tools": {}, "prompts": {"list_changed": True}, "resources": {}})
    talk = Talk(kit, STATELESS)
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["x:"]}
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: talk.request("subscriptions/listen", {"notifications": wanted}))
        await eventually(lambda: talk.sent)
        kit.close()
    assert talk.sent[0]["params"]["notifications"] == {"promptsListChanged": True}


@pytest.mark.parametrize("params", [{}, {"notifications": None}, {"notifications": []}])
async def test_a_filter_must_be_there(params: dict[str, Any]) -> None:
    error = await Talk(server(), STATELESS).error("subscriptions/listen", params)
    assert error["code"] == -32602


async def test_tasks_are_listened_to_only_by_who_declares_them() -> None:
    params = {"notifications": {"taskIds": ["x"]}}
    error = await Talk(server(), STATELESS).error("subscriptions/listen", params)
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


async def test_listeners_are_bounded() -> None:
    kit = server(limits=KitLimits(listeners=1))
    talk = Talk(kit, STATELESS)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: talk.request("subscriptions/listen", {"notifications": {}}))
        await eventually(lambda: kit.listeners)
        error = await talk.error("subscriptions/listen", {"notifications": {}})
        assert error == {"code": -32000, "message": "more than 1 subscriptions at once"}
        kit.close()
