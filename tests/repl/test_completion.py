"""Tab offers servers, tools, arguments, values, prompts and URIs; and never hangs or fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mcpclient import Manager, ServerSpec, Timeouts, blocking
from mcpclient.repl import Explorer, explore, lists
from mcpclient.repl.completion import offers
from mcpclient.repl.console import matches
from tests.conftest import eventually
from tests.repl.conftest import spec


@pytest.fixture(scope="module")
def shared() -> Iterator[Explorer]:
    """A server that no test changes, for all of them."""
    with blocking.Manager({"git": spec()}) as opened:
        opened["git"].start()  # a test that starts it would leave it behind
        yield explore(opened)["git"]


def offered(text: str, git: Explorer, after: str = "") -> list[str] | None:
    """Return the whole lines that may become of a line; None if nobody knows the place."""
    servers = explore(git.server._home)
    found = offers(text, {"git": git, "servers": servers, "x": object()}, after)
    return None if found is None else [text[: found.start] + one for one in found.texts]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("git.to", ["git.tools"]),
        ("git.tools.st", ["git.tools.status"]),
        ("await git.tools.odd", ["await git.tools.odd_name"]),
        ("git.tools._", []),
        ('git.tools["odd', ['git.tools["odd-name"']),
        ("git.tools['odd", ["git.tools['odd-name'"]),
        ("git.prompts.", ["git.prompts.review"]),
        ("git.tools.status(m", ["git.tools.status(mode=", "git.tools.status(max_count="]),
        ("git.tools.status('.', m", ["git.tools.status('.', mode=",
                                     "git.tools.status('.', max_count="]),
        ("git.tools.status(mode='long', m", ["git.tools.status(mode='long', max_count="]),
        ("git.tools.status(mode=", ['git.tools.status(mode="short"', 'git.tools.status(mode="long"',
                                    'git.tools.status(mode="q\\"uote"']),
        ("git.tools.status(mode='l", ["git.tools.status(mode='long'"]),
        ("git.tools.status(mode='q\"", ["git.tools.status(mode='q\"uote'"]),
        ('git.tools.status(mode="q\\"', ['git.tools.status(mode="q\\"uote"']),
        ("git.tools.status('.', 'l", ["git.tools.status('.', 'long'"]),
        ("git.tools.status(deep=T", ["git.tools.status(deep=True"]),
        ("git.tools.status(from_=", []),
        ("git.tools['odd-name'](", []),
        ('servers["git"].tools.status(p', ['servers["git"].tools.status(path=']),
        ("servers.", ["servers.git"]),
        ('servers["', ['servers["git"']),
        ("git.prompts.review(", ["git.prompts.review(code=", "git.prompts.review(style="]),
        ("git.prompts.review(style='kind", ["git.prompts.review(style='kind'",
                                            "git.prompts.review(style='kinder'"]),
        ("git.prompts.review('shout', style='", ["git.prompts.review('shout', style='KIND'",
            "git.prompts.review('shout', style='KINDER'",
            "git.prompts.review('shout', style='STRICT'"]),
        ('git.resources["file:///p', ['git.resources["file:///pixel.png"']),
        ('git.read("file:///d', ['git.read("file:///data.json"']),
        ("git.read('x', cache='b", ["git.read('x', cache='bypass'"]),
        ('git.templates["', ['git.templates["test://item/{name}{?rev}"']),
        ('git.templates["test://item/{name}{?rev}"](name="t',
         ['git.templates["test://item/{name}{?rev}"](name="two"']),
        ("x.", None),
        ("nobody.tools.", None),
        ("git.tools.nothing(", None),
        ("git.resources['file:///read.md'].", None),
        ("git.state.", None),
        ("git.tools.status.", None),
        ("git(", None),
        ("git.prompts[", ['git.prompts["review"']),
    ],
)  # fmt: skip
def test_what_is_offered(text: str, lines: list[str] | None, shared: Explorer) -> None:
    assert offered(text, shared) == lines


def test_looking_into_brackets_reads_no_resource(git: Explorer) -> None:
    offered("git.resources['file:///read.md'].", git)
    offered("git.resources['file:///read.md'](", git)
    assert "resources/read" not in git.tools.asked().text


def test_a_quote_that_is_there_already_is_not_offered_again(git: Explorer) -> None:
    assert offered("git.tools.status(mode='l", git, "')") == ["git.tools.status(mode='long"]
    assert offered('git.resources["file:///p', git, '"]') == ['git.resources["file:///pixel.png']


@pytest.mark.parametrize(
    ("line", "word", "texts"),
    [
        ("git.tools.st", "git.tools.st", ["git.tools.status"]),
        ('git.resources["file:///p', "p", ['pixel.png"']),
        ('git.resources["file:///p', "", ['ixel.png"']),
        ('git.resources["file:///', "", ['read.md"', 'data.json"', 'pixel.png"']),
        ("git.tools.status(mode='lo", "lo", ["long'"]),
        ("git.tools.status(mode=", "", ['"short"', '"long"', '"q\\"uote"']),
        ('git.tools.status(mode="q\\"', "", ['uote"']),
        ("git.tools['odd-n", "n", ["name'"]),
        ("x.", "x.", None),
    ],
)
def test_readline_gets_what_replaces_the_word_that_it_sees(
    line: str, word: str, texts: list[str] | None, shared: Explorer
) -> None:
    names = {"git": shared, "x": object()}
    found = matches("", line, len(line) - len(word), len(line), names)
    assert found == texts


def test_a_statement_of_several_lines_is_seen_as_a_whole(git: Explorer) -> None:
    above, line = "git.tools.status(\n    '.',\n", "    mo"
    assert matches(above, line, 4, 6, {"git": git}) == ["mode="]


def test_a_server_that_does_not_answer_costs_a_bounded_wait_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lists, "PATIENCE", 0.1)
    silent = ServerSpec("sleep", ["60"], timeouts=Timeouts(eof=0.1, term=1))
    with blocking.Manager({"git": silent}) as manager:
        git = explore(manager).git
        begun = time.monotonic()
        for _ in range(100):
            assert offered("git.tools.", git) == []
            assert offered("git.resources['", git) == []
        assert dir(git.tools) == []
        # A hundred waits of each kind would be 20 seconds.
        assert time.monotonic() - begun < 10


def test_a_closed_manager_offers_nothing_and_raises_nothing() -> None:
    with blocking.Manager({"git": spec()}) as manager:
        servers = explore(manager)
        git = servers.git
    assert not offers("git.tools.", {"git": git}).texts  # type: ignore[union-attr]
    assert offers("servers.git.tools.", {"servers": servers}) is not None


def test_a_list_that_was_read_is_offered_when_the_server_is_gone(git: Explorer) -> None:
    assert "git.tools.status" in (offered("git.tools.", git) or [])
    git.stop()
    assert "git.tools.status" in (offered("git.tools.", git) or [])


async def test_over_the_async_manager_lists_are_read_aside_for_the_next_time() -> None:
    async with Manager({"git": spec()}) as manager:
        git = explore(manager).git
        names = {"git": git}

        def found() -> tuple[str, ...]:
            offer = offers("git.tools.st", names)
            assert offer is not None
            return offer.texts

        assert found() == ()
        assert await eventually(found) == ("status",)
        await git.refresh()
        values = offers("git.tools.status(mode='l", names)
        assert values is not None
        assert values.texts == ("'long'",)


def test_outside_of_a_loop_nothing_is_asked_over_the_async_manager() -> None:
    class Server:
        name, generation = "git", 0

        async def list_tools(self) -> list[Any]:
            raise AssertionError

    assert lists.Lists(Server()).soon("tools") == {}
