"""Prompts of both generations."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from msgspec import Meta

from mcpclient.serverkit import Frame, Peer, Prompt, Response, RpcError, Schema, Server
from tests.serverkit.talking import ERAS, Talk


class First(Prompt):
    """First generation: name, arguments, messages."""

    name = "first"
    arguments = (
        {"name": "topic", "description": "What about.", "required": True},
        {"name": "mood", "description": "How.", "required": False},
    )

    async def get_messages(self, args: dict[str, str], frame: Frame) -> Any:
        text = f"{args['topic']}, {args.get('mood', 'plain')}"
        return [{"role": "user", "content": {"type": "text", "text": text}}]


class Second(Prompt):
    """Second generation."""

    title = "The second"
    listed = 0

    class Arguments(Schema):
        topic: Annotated[str, Meta(title="Topic", description="What about.")]
        times: int = 1

    @property
    def description(self) -> str:  # type: ignore[override]
        self.listed += 1
        return f"Listed {self.listed} times."

    async def get_messages(self, args: Arguments, frame: Frame) -> Any:
        return Response().user(args.topic).assistant("Yes?").user("!" * args.times)


class Remembering(Prompt):
    """Remembers that it was used."""

    async def get_messages(self, args: Any, frame: Frame) -> Any:
        frame.assign(last_prompt_used=self.name)
        return [{"role": "user", "content": "words"}], frame


def server() -> Server:
    """Return a server with the three."""
    return Server("a", "1", components=[First, Second, Remembering])


def said(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Return who says what."""
    return [(one["role"], one["content"]["text"]) for one in result["messages"]]


@pytest.mark.parametrize("version", ERAS)
async def test_the_first_generation_has_arguments_by_hand_and_returns_messages(
    version: str,
) -> None:
    async with Talk(server(), version) as talk:
        item = (await talk.result("prompts/list"))["prompts"][0]
        assert item == {
            "name": "first",
            "title": "first",
            "description": "First generation: name, arguments, messages.",
            "arguments": [
                {"name": "topic", "description": "What about.", "required": True},
                {"name": "mood", "description": "How.", "required": False},
            ],
        }
        found = await talk.result("prompts/get", {"name": "first", "arguments": {"topic": "rain"}})
        assert said(found) == [("user", "rain, plain")]
        assert found["description"] == "First generation: name, arguments, messages."


@pytest.mark.parametrize("version", ERAS)
async def test_the_second_generation_has_title_and_description_of_each_list(version: str) -> None:
    async with Talk(server(), version) as talk:
        for count in (1, 2):
            item = (await talk.result("prompts/list"))["prompts"][2]
            assert item == {
                "name": "second",
                "title": "The second",
                "description": f"Listed {count} times.",
                "arguments": [
                    {
                        "name": "topic",
                        "title": "Topic",
                        "description": "What about.",
                        "required": True,
                    },
                    {"name": "times", "required": False},
                ],
            }


async def test_a_response_gives_its_messages_in_the_order_of_the_calls() -> None:
    async with Talk(server()) as talk:
        # Arguments are text on the wire, whatever the schema makes of them.
        given = {"topic": "rain", "times": "3"}
        found = await talk.result("prompts/get", {"name": "second", "arguments": given})
        assert said(found) == [("user", "rain"), ("assistant", "Yes?"), ("user", "!!!")]


async def test_what_a_prompt_puts_into_the_frame_persists_in_the_session() -> None:
    async with Talk(server()) as talk:
        found = await talk.result("prompts/get", {"name": "remembering"})
        assert said(found) == [("user", "words")]
        assert talk.session.state.assigns == {"last_prompt_used": "remembering"}


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"name": "nope"}, "Prompt not found: nope"),
        ({}, "Missing parameter: name"),
        ({"name": "first"}, "Invalid params: arguments: Object missing required field `topic`"),
        (
            {"name": "second", "arguments": {"times": "1"}},
            "Invalid params: arguments: Object missing required field `topic`",
        ),
        (
            {"name": "second", "arguments": {"topic": "a", "times": "many"}},
            "Invalid params: arguments.times: Expected `int`, got `str`",
        ),
        (
            {"name": "first", "arguments": {"topic": 5}},
            "Invalid params: arguments[...]: Expected `str`, got `int`",
        ),
    ],
)
async def test_bad_requests_for_prompts_are_invalid_params(
    version: str, params: dict[str, Any], problem: str
) -> None:
    async with Talk(server(), version) as talk:
        error = await talk.error("prompts/get", params)
    assert error == {"code": -32602, "message": problem}


@pytest.mark.parametrize("version", ERAS)
async def test_a_prompt_may_be_text_or_messages_or_refuse(version: str) -> None:
    server = Server("a", "1")

    @server.prompt(title="As text", description="By hand.")
    async def text(topic: str) -> str:
        return f"about {topic}"

    @server.prompt
    async def blocks(frame: Frame) -> Any:
        image = Response().image(b"\x00", "image/png")
        return (
            Response().description("this time").user(image).assistant({"type": "text", "text": "a"})
        )

    @server.prompt
    async def refuse() -> None:
        """Refuses."""
        raise RpcError(-32050, "no", [1])

    @server.prompt
    async def wrong() -> Any:
        return 5

    async with Talk(server, version) as talk:
        listed = (await talk.result("prompts/list"))["prompts"]
        assert [(one["name"], one["title"], one.get("description")) for one in listed] == [
            ("blocks", "blocks", None),
            ("refuse", "refuse", "Refuses."),
            ("text", "As text", "By hand."),
            ("wrong", "wrong", None),
        ]
        found = await talk.result("prompts/get", {"name": "text", "arguments": {"topic": "rain"}})
        assert said(found) == [("user", "about rain")]
        found = await talk.result("prompts/get", {"name": "blocks"})
        assert [one["content"]["type"] for one in found["messages"]] == ["image", "text"]
        assert found["description"] == "this time"
        error = await talk.error("prompts/get", {"name": "refuse"})
        assert error == {"code": -32050, "message": "no", "data": [1]}
        error = await talk.error("prompts/get", {"name": "wrong"})
        assert error["code"] == -32603
        assert (
            "a prompt returns text, a list of messages or a Response, not int" in error["message"]
        )


async def test_a_prompt_may_need_scopes() -> None:
    server = Server("a", "1", components=[Remembering(scopes=["write"])])
    async with Talk(server, peer=Peer(scopes=frozenset({"read"}))) as talk:
        assert (await talk.result("prompts/list"))["prompts"] == []
        error = await talk.error("prompts/get", {"name": "remembering"})
        assert error == {
            "code": -32010,
            "message": "insufficient scope: write",
            "data": {"requiredScopes": ["write"]},
        }
