"""What a server that asks is told: roots, a model's answer, a person's; and what it never is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpclient import LocalProtocolError, Manager, Refuse
from mcpclient.features.asks import Asks

ROOTS, SAMPLE, ELICIT = "roots/list", "sampling/createMessage", "elicitation/create"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
WANTED: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
    "maxTokens": 10,
}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "size": {"type": "integer", "default": 3},
    },
    "required": ["name"],
}
PAGE = {"mode": "url", "message": "Log in", "url": "https://x.example/", "elicitationId": "e"}


async def answer(asks: Asks, method: str, params: Any = None) -> Any:
    return await asks.answer("the server", method, {} if params is None else params)


async def refusal(asks: Asks, method: str, params: Any = None) -> tuple[int, str]:
    """Return the code and the words of the refusal that an ask gets."""
    with pytest.raises(Refuse) as caught:
        await answer(asks, method, params)
    return caught.value.code, caught.value.message


# -- what is offered -----------------------------------------------------------------------


def test_only_what_has_a_handler_is_offered() -> None:
    def handler(*facts: Any) -> None: ...

    assert Asks().offers == frozenset()
    assert Asks(roots=[]).offers == {"roots"}  # none is an answer
    assert Asks(on_sample=handler).offers == {"sampling"}
    assert Asks(on_elicit=handler).offers == {"elicitation"}
    everything = Asks(["/"], handler, handler)
    assert everything.offers == {"roots", "sampling", "elicitation"}
    assert [everything.answers(method) for method in (ROOTS, SAMPLE, ELICIT)] == [True] * 3
    assert not everything.answers("ping")
    assert not everything.answers(None)


@pytest.mark.parametrize("method", [ROOTS, SAMPLE, ELICIT, "ping", "any\x1b[2Jthing"])
async def test_what_has_no_handler_is_refused_by_name(method: str) -> None:
    code, words = await refusal(Asks(), method)
    assert code == -32601
    assert words.endswith(" is not supported by this client")
    assert words.isprintable()


# -- roots ---------------------------------------------------------------------------------


async def test_paths_and_uris_are_roots(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    spaced = tmp_path / "a b"
    asks = Asks([spaced, str(tmp_path), "file:///x%20y", "file://host/share"])
    assert await answer(asks, ROOTS) == {
        "roots": [
            {"uri": f"file://{tmp_path}/a%20b", "name": "a b"},
            {"uri": f"file://{tmp_path}", "name": tmp_path.name},
            {"uri": "file:///x%20y"},
            {"uri": "file://host/share"},
        ]
    }
    assert await answer(Asks(roots=[]), ROOTS) == {"roots": []}


async def test_a_path_is_made_absolute_and_never_climbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "inner")
    monkeypatch.chdir(tmp_path)
    asks = Asks(["real", "link/..", os.fspath(tmp_path / "real" / ".." / "real")])
    uris = [one["uri"] for one in (await answer(asks, ROOTS))["roots"]]
    # As the system walks: the parent of what the link leads to.
    assert uris == [f"file://{tmp_path}/real"] * 3


async def test_a_function_gives_the_roots_of_the_moment_to_the_server_that_asks() -> None:
    told: list[Any] = []
    roots: list[Any] = [Path("/one")]

    def plain(server: Any) -> Any:
        told.append(server)
        return tuple(roots)

    async def later(server: Any) -> Any:
        return plain(server)

    for function in (plain, later):
        roots[:] = [Path("/one")]
        asks = Asks(function)
        assert (await answer(asks, ROOTS))["roots"] == [{"uri": "file:///one", "name": "one"}]
        roots[:] = [{"uri": "file:///two", "name": "2", "_meta": {"x": 1}}]
        assert (await answer(asks, ROOTS))["roots"] == roots
    assert told == ["the server"] * 4


ODD_ROOTS: list[Any] = [
    "http://example.com/",
    "file:relative",
    "file:///a/../b",
    "file:///a/%2e%2e/b",
    "file:///a\\..\\b",
    {"uri": "https://example.com/"},
    {"name": "no uri"},
    {"uri": 5},
]


@pytest.mark.parametrize("root", ODD_ROOTS, ids=repr)
async def test_what_is_no_root_is_refused_at_once_or_never_sent(root: Any) -> None:
    with pytest.raises(ValueError, match="a root"):
        Asks([root])
    with pytest.raises(ValueError, match="a root"):
        await answer(Asks(lambda server: [root]), ROOTS)


@pytest.mark.parametrize("roots", ["/a/path", Path("/a/path")])
async def test_a_single_path_is_not_taken_for_a_list_of_letters(roots: Any) -> None:
    with pytest.raises(ValueError, match="roots must be a list of paths, not the single path"):
        Manager({}, roots=roots)
    with pytest.raises(ValueError, match="roots must be a list of paths"):
        await answer(Asks(lambda server: roots), ROOTS)


# -- a model -------------------------------------------------------------------------------


class Said(msgspec.Struct):
    role: str
    content: dict[str, Any]
    model: str


@pytest.mark.parametrize("said", [SAID, Said(**SAID)], ids=["mapping", "struct"])
async def test_a_model_is_asked_and_its_answer_goes_back_as_it_is(said: Any) -> None:
    asked: list[Any] = []

    async def sample(server: Any, params: Any) -> Any:
        asked.append((server, params))
        return said

    assert await answer(Asks(on_sample=sample), SAMPLE, WANTED) == SAID
    assert asked == [("the server", WANTED)]


TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
WITH_TOOLS: list[dict[str, Any]] = [
    {"tools": []},
    {"tools": [{"name": "t", "inputSchema": {}}]},
    {"toolChoice": {"mode": "none"}},
    {"messages": [{"role": "assistant", "content": TOOL_USE}]},
    {"messages": [{"role": "assistant", "content": [{"type": "text", "text": ""}, TOOL_USE]}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "toolUseId": "1"}]}]},
]


@pytest.mark.parametrize("more", WITH_TOOLS, ids=str)
async def test_tools_were_not_offered_so_no_model_is_asked_to_use_any(more: Any) -> None:
    asks = Asks(on_sample=lambda server, params: pytest.fail("asked all the same"))
    words = "sampling with tools is not supported by this client"
    assert await refusal(asks, SAMPLE, {**WANTED, **more}) == (-32602, words)


@pytest.mark.parametrize(
    "more",
    [
        {"tools": None, "toolChoice": None},
        {"messages": None},
        {"messages": ["x", {"content": None}, {"content": [1, "tool_use"]}]},
        {"includeContext": "allServers", "temperature": 0.5, "metadata": {"x": [1]}},
    ],
    ids=str,
)
async def test_what_else_is_odd_in_a_request_is_left_to_the_handler(more: Any) -> None:
    asks = Asks(on_sample=lambda server, params: SAID)
    assert await answer(asks, SAMPLE, {**WANTED, **more}) == SAID


@pytest.mark.parametrize("lacking", ["role", "content", "model"])
async def test_an_answer_that_lacks_what_every_version_wants_is_not_sent(lacking: str) -> None:
    for odd in ({**SAID, lacking: None}, {k: v for k, v in SAID.items() if k != lacking}):
        code, words = await refusal(Asks(on_sample=lambda server, params, o=odd: o), SAMPLE, WANTED)
        assert (code, words) == (-32603, f"the handler's result lacks {lacking}")


@pytest.mark.parametrize("odd", [None, "hi", 5, ["x"], True])
@pytest.mark.parametrize("method", [SAMPLE, ELICIT])
async def test_what_is_no_mapping_is_not_sent(method: str, odd: Any) -> None:
    asks = Asks(None, lambda server, params: odd, lambda server, params: odd)
    assert await refusal(asks, method, {"message": "?"}) == (
        -32603,
        f"the handler of {method} returned no mapping",
    )


async def test_a_handlers_own_refusal_and_its_fault_are_its_own() -> None:
    def refuse(server: Any, params: Any) -> Any:
        raise Refuse("not for you", code=-7)

    async def fail(server: Any, params: Any) -> Any:
        raise ZeroDivisionError

    assert await refusal(Asks(on_sample=refuse), SAMPLE, WANTED) == (-7, "not for you")
    with pytest.raises(ZeroDivisionError):
        await answer(Asks(on_sample=fail), SAMPLE, WANTED)
    assert (Refuse().code, Refuse().message) == (-1, "the user refused")


# -- a person ------------------------------------------------------------------------------


def person(**says: Any) -> Asks:
    """Return the asks of a client whose person always says the same."""
    return Asks(on_elicit=lambda server, params: says)


@pytest.mark.parametrize("mode", [{}, {"mode": "form"}, {"mode": None}], ids=str)
async def test_a_form_is_filled_with_its_defaults(mode: dict[str, Any]) -> None:
    form = {**mode, "message": "?", "requestedSchema": FORM}
    content = {"name": "Ada"}
    asks = person(action="accept", content=content)
    assert await answer(asks, ELICIT, form) == {
        "action": "accept",
        "content": {"name": "Ada", "size": 3},
    }
    assert content == {"name": "Ada"}
    kept = person(action="accept", content={"name": "Ada", "size": 0})
    assert (await answer(kept, ELICIT, form))["content"] == {"name": "Ada", "size": 0}


async def test_a_form_without_anything_to_fill_in_gets_an_empty_object() -> None:
    for content in ({}, {"content": None}, {"content": {}}):
        asks = person(action="accept", **content)
        for schema in ({}, {"requestedSchema": {"type": "object", "properties": {}}}):
            assert await answer(asks, ELICIT, {"message": "?", **schema}) == {
                "action": "accept",
                "content": {},
            }


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_declines_or_cancels_says_nothing_else(action: str) -> None:
    asks = person(action=action, content={"name": "never sent"}, reason="never sent")
    for params in ({"message": "?", "requestedSchema": FORM}, PAGE):
        assert await answer(asks, ELICIT, params) == {"action": action}


async def test_consent_to_a_page_has_no_content() -> None:
    asked: list[Any] = []

    def elicit(server: Any, params: Any) -> Any:
        asked.append(params)
        return {"action": "accept", "content": {"secret": "never sent"}}

    assert await answer(Asks(on_elicit=elicit), ELICIT, PAGE) == {"action": "accept"}
    assert asked == [PAGE]  # the whole address, as it came


@pytest.mark.parametrize(
    "odd", [None, "yes", "ACCEPT", "", 1, True, ["accept"], {"a": 1}], ids=repr
)
async def test_no_other_action_is_sent(odd: Any) -> None:
    words = "the handler's action must be one of accept, decline, cancel"
    assert await refusal(person(action=odd), ELICIT, {"message": "?"}) == (-32603, words)


async def test_what_does_not_fit_the_form_is_not_sent_and_not_told() -> None:
    asks = person(action="accept", content={"name": "S", "size": "secret", "more": 1})
    code, words = await refusal(asks, ELICIT, {"message": "?", "requestedSchema": FORM})
    assert code == -32603
    assert words.startswith("the answer does not fit the form: ")
    assert 'the field "name" must have at least 2 characters' in words
    assert 'the field "size" must be a whole number, not text' in words
    assert 'the form has no field "more"' in words
    assert "secret" not in words


async def test_content_that_is_no_mapping_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError, match="must be a mapping by field, not list"):
        await answer(person(action="accept", content=["x"]), ELICIT, {"requestedSchema": FORM})


@pytest.mark.parametrize("mode", ["voice", "", "URL", 5, True, ["url"], {"a": {}}], ids=repr)
async def test_a_mode_that_was_not_offered_is_refused(mode: Any) -> None:
    asks = Asks(on_elicit=lambda server, params: pytest.fail("asked all the same"))
    code, words = await refusal(asks, ELICIT, {"mode": mode, "message": "?"})
    assert (code, words) == (-32602, "the mode of this elicitation is not supported")


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


PAGES_TO_REFUSE: list[Any] = [
    "http://x.example/",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "vbscript:x",
    "https:x",
    "https://",
    "https://[",
    "//x.example/",
    "",
    None,
    5,
    ["https://x.example/"],
    nested(900),
]


@pytest.mark.parametrize("url", PAGES_TO_REFUSE, ids=lambda url: repr(url)[:30])
async def test_a_page_that_is_not_safe_to_open_is_shown_to_nobody(url: Any) -> None:
    asks = Asks(on_elicit=lambda server, params: pytest.fail("asked all the same"))
    code, words = await refusal(asks, ELICIT, {**PAGE, "url": url})
    assert (code, words) == (-32602, "only https pages are shown to a person")


@pytest.mark.parametrize(
    "url",
    [
        "https://x.example/a?b#c",
        "HTTPS://X.EXAMPLE",
        "https://xn--e1afmkfd.example/",
        "http://localhost:8000/x",
        "http://127.0.0.1/",
        "http://[::1]:80/",
    ],
)
async def test_https_and_this_machine_are_safe_enough_to_ask_about(url: str) -> None:
    assert await answer(person(action="accept"), ELICIT, {**PAGE, "url": url}) == {
        "action": "accept"
    }


@pytest.mark.parametrize(
    "handler",
    [
        lambda server, params: object(),
        lambda server, params: {"action": "accept", "content": {"name": object()}},
        lambda server: None,
    ],
)
async def test_rubbish_of_a_handler_is_an_error_and_no_answer(handler: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        await answer(Asks(on_elicit=handler), ELICIT, {"requestedSchema": FORM})
