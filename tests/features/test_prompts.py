"""Getting prompts: what is sent, what comes back, and what is refused on which side."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient import (
    ImageContent,
    LocalProtocolError,
    Manager,
    RemoteProtocolError,
    ReplyError,
    TextContent,
    UnknownContent,
)
from tests.conftest import spec
from tests.features.helpers import journal, puppet, result

BOTH = pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


@BOTH
async def test_a_prompt_comes_with_its_arguments_filled_in(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    found = await server.get_prompt("greet", {"name": "Ada"})
    assert found.text == "Greet Ada."
    assert [(one.role, one.content) for one in found.messages] == [
        ("user", TextContent("Greet Ada."))
    ]
    assert found.raw["messages"] == [said("Greet Ada.")]
    assert found.description is None


async def test_the_result_is_given_back_as_it_came(manager: Manager) -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    members = {
        "description": "what it is for",
        "messages": [
            said("one"),
            {"role": "assistant", "content": image, "extra": 1},
            {"role": "user", "content": {"type": "widget"}},
            said("two", role="assistant"),
        ],
        "_meta": {"m": 1},
        "extra": [1],
    }
    server = await manager.add("s", puppet({"prompts/get": [result(**members)]}))
    found = await server.get_prompt("any")
    assert found.raw == members
    assert (found.description, found.meta, found.text) == ("what it is for", {"m": 1}, "one\ntwo")
    assert [one.role for one in found.messages] == ["user", "assistant", "user", "assistant"]
    assert [one.content for one in found.messages][1:3] == [
        ImageContent("AA==", "image/png"),
        UnknownContent("widget", {"type": "widget"}),
    ]


async def test_the_arguments_sent_are_always_an_object(manager: Manager) -> None:
    server = await manager.add("s", puppet({"prompts/get": [result(messages=[])]}))
    await server.get_prompt("plain")
    await server.get_prompt("plain", None)
    await server.get_prompt("plain", {})
    await server.get_prompt("greet", {"name": ""})
    sent = [one["params"] for one in await journal(server, "prompts/get")]
    assert sent == [
        {"name": "plain", "arguments": {}},
        {"name": "plain", "arguments": {}},
        {"name": "plain", "arguments": {}},
        {"name": "greet", "arguments": {"name": ""}},
    ]


@pytest.mark.parametrize(
    ("value", "kind"), [(5, "int"), (None, "NoneType"), (True, "bool"), (["a"], "list")]
)
async def test_an_argument_that_is_not_text_is_refused_here_by_name(
    manager: Manager, value: Any, kind: str
) -> None:
    server = await manager.add("s", puppet())
    with pytest.raises(LocalProtocolError) as caught:
        await server.get_prompt("greet", {"name": "Ada", "age": value})
    assert str(caught.value) == (
        f"the argument 'age' of the prompt 'greet' must be text, not {kind}; write it as a string"
    )
    assert server.state == "idle"  # nothing was started for it


@BOTH
async def test_a_missing_argument_and_an_unknown_prompt_are_refused_by_the_server(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    with pytest.raises(ReplyError) as caught:
        await server.get_prompt("greet")
    assert (caught.value.code, caught.value.message) == (
        -32602,
        "Missing required argument: name",
    )
    assert (caught.value.method, caught.value.server) == ("prompts/get", "s")
    with pytest.raises(ReplyError) as caught:
        await server.get_prompt("nonsense", {"name": "Ada"})
    assert str(caught.value) == '[-32602] Unknown prompt: nonsense (prompts/get on "s")'


async def test_prompts_are_never_cached(manager: Manager) -> None:
    script = {"prompts/get": [result(messages=[said("first")]), result(messages=[said("second")])]}
    server = await manager.add("s", puppet(script))
    assert (await server.get_prompt("plain")).text == "first"
    assert (await server.get_prompt("plain")).text == "second"
    assert manager.cache.stats().entries == 0


async def test_a_prompt_that_cannot_be_read_is_an_error(manager: Manager) -> None:
    odd: list[Any] = [
        {"messages": "x"},
        {"messages": [{"role": "user"}]},
        {"messages": ["x"]},
        [],
        None,
    ]
    script = {"prompts/get": [{"result": one} for one in odd]}
    server = await manager.add("s", puppet(script))
    for _ in odd:
        with pytest.raises(RemoteProtocolError) as caught:
            await server.get_prompt("plain")
        assert "the prompt has an unexpected shape" in str(caught.value)
