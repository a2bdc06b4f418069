"""Results are shown as people want them, and harmlessly."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from mcpclient.protocol.types import ResourceResult, ToolResult
from mcpclient.repl.results import ShownResource, ShownTool
from mcpclient.repl.tables import Table, cut, first_line, width

PIXEL = "iVBORw0KGgo="


def shown(*content: Any, **more: Any) -> ShownTool:
    """Return a tool's result that shows itself."""
    return ShownTool.of(ToolResult(msgspec.json.encode({"content": content, **more})))


def text(words: str) -> dict[str, str]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def read(**contents: Any) -> ShownResource:
    """Return what was read of a resource."""
    wire = {"contents": [{"uri": "test://a", **contents}]}
    return ShownResource.of(ResourceResult(msgspec.json.encode(wire)))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (shown(text("one\n\ttwo")), "one\n\ttwo"),
        (shown(text("a"), text("b")), "a\nb"),
        (shown(text("x\x1b[2J\r\n\x9b31m\x07")), "x\\x1b[2J\n\\x9b31m\\x07"),
        (shown(text('{"a": [1, "ü"]}')), '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'),
        (shown(text('{"a": "\\u001b[2J"}')), '{\n  "a": "\\u001b[2J"\n}'),
        (shown(text("{not json")), "{not json"),
        (shown(text("[" * 5000)), "[" * 5000),
        (shown(structuredContent={"a": 1}), '{\n  "a": 1\n}'),
        (shown(structuredContent=None), "null"),
        (shown(), "(nothing)"),
        (shown({"type": "image", "data": PIXEL, "mimeType": "image/png"}), "[image/png, 8 B]"),
        (shown({"type": "image", "data": "§", "mimeType": "a\x1b"}), "[a\\x1b, not base64]"),
        (
            shown({"type": "resource_link", "uri": "test://a\x1b", "name": "A"}),
            '[link test://a\\x1b "A"]',
        ),
        (
            shown({"type": "resource", "resource": {"uri": "test://a", "text": "in\x1bside"}}),
            "[resource test://a]\nin\\x1bside",
        ),
        (
            shown({"type": "resource", "resource": {"uri": "test://a", "blob": "AAE="}}),
            "[resource test://a]\n[application/octet-stream, 2 B]",
        ),
        (
            shown({"type": "wid\x1bget", "x": 1}),
            '[wid\\x1bget]\n{\n  "type": "wid\\u001bget",\n  "x": 1\n}',
        ),
        (read(text="# Title", mimeType="text/markdown"), "# Title"),
    ],
)
def test_a_result_as_text(result: Any, said: str) -> None:
    assert repr(result) == said
    assert str(result) == said
    assert f"{result}" == said


def test_the_result_is_still_the_result_of_the_library() -> None:
    result = shown(text("x"), structuredContent={"a": 1}, isError=True)
    assert isinstance(result, ToolResult)
    assert (result.text, result.structured, result.is_error) == ("x", {"a": 1}, True)
    assert result.raw["content"] == [text("x")]


def test_a_very_long_text_is_cut_and_says_so() -> None:
    assert repr(shown(text("x" * 200_000))).endswith("… (200000 characters)")


def test_one_picture_is_that_picture_to_a_notebook() -> None:
    found = shown({"type": "image", "data": "iVBORw0\nKGgo", "mimeType": "image/png"})
    assert found._repr_mimebundle_() == {"text/plain": "[image/png, 8 B]", "image/png": PIXEL}
    assert read(blob=PIXEL, mimeType="image/png")._repr_mimebundle_()["image/png"] == PIXEL


def test_words_and_pictures_are_a_page_and_its_words_are_escaped() -> None:
    found = shown(
        text("<b>bold"),
        {"type": "image", "data": PIXEL, "mimeType": "image/svg+xml"},
        {"type": "image", "data": PIXEL, "mimeType": "image/jpeg"},
        {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
    )._repr_mimebundle_()
    assert found["image/jpeg"] == PIXEL
    assert found["text/html"] == (
        "<pre>&lt;b&gt;bold</pre>\n"
        f'<img src="data:image/svg+xml;base64,{PIXEL}">\n'
        f'<img src="data:image/jpeg;base64,{PIXEL}">\n'
        f'<audio controls src="data:audio/wav;base64,{PIXEL}"></audio>'
    )


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "§", "mimeType": "image/png"},
        {"type": "image", "data": PIXEL, "mimeType": 'image/png" onerror="alert(1)'},
        {"type": "image", "data": PIXEL, "mimeType": "text/html"},
        text("<script>"),
    ],
)
def test_nothing_else_is_more_than_text_to_a_notebook(block: dict[str, Any]) -> None:
    assert list(shown(block)._repr_mimebundle_()) == ["text/plain"]


def test_html_and_svg_of_a_server_never_reach_a_notebook_as_such() -> None:
    page = read(text="<script>", mimeType="text/html")._repr_mimebundle_()
    assert list(page) == ["text/plain"]
    picture = read(blob=PIXEL, mimeType="image/svg+xml")._repr_mimebundle_()
    assert set(picture) == {"text/plain", "text/html"}
    assert picture["text/html"].startswith("<img ")


def test_markdown_is_rendered_without_its_html_scripts_and_remote_pictures() -> None:
    source = (
        "# T\n<script>alert(1)</script>\n\n<b>x</b> [a](javascript:alert(1)) "
        "![p](http://example.com/p.png) `<i>`\n"
    )
    found = read(text=source, mimeType="text/markdown; charset=utf-8")._repr_mimebundle_()
    page = found["text/html"]
    assert page.startswith("<h1>T</h1>")
    assert "<script" not in page
    assert "<b>" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert "<code>&lt;i&gt;</code>" in page
    assert found["text/plain"] == source.rstrip("\n") + "\n"


def test_a_table_fits_the_terminal_and_lets_nothing_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("a\x1b[2J", None, "words " * 20), ("日本", 5, "z\nz")]
    assert str(Table("t\x1b", ("name", "n", "last"), rows, "no\x1bte")).splitlines() == [
        "t\\x1b",
        "name      n  last",
        "a\\x1b[2J  –  words words words words wo…",
        "日本      5  z\\nz",
        "no\\x1bte",
    ]
    many = str(Table("", ("a",), [(n,) for n in range(1000)]))
    assert many.endswith("… and 500 more")


def test_the_html_of_a_table_is_escaped() -> None:
    page = Table("<t>", ("a",), [("<script>",)], "<n>").html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;t&gt;" in page
    assert "&lt;n&gt;" in page


def test_widths_are_those_of_a_terminal() -> None:
    assert width("abc") == 3
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert cut("日本語", 4) == "日…"
    assert cut("abc", 3) == "abc"
    assert first_line("\n  \n one \ntwo") == "one"
    assert first_line(None) == ""


def test_numbers_that_json_does_not_know_leave_the_text_as_it_is() -> None:
    assert repr(shown(text('{"a": NaN}'))) == '{"a": NaN}'
    assert json.loads(repr(shown(text("[1.5, 12345678901234567890]")))) == [
        1.5,
        12345678901234567890,
    ]
