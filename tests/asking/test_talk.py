"""A talk with a person, line by line: forms, pages, and every way out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mcpclient.asking.pages import page
from mcpclient.asking.talk import Open, talk
from mcpclient.features.asks import Refuse
from tests.cli.driving import EVIL, acting

FORM = {
    "message": "Who\nare you?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "size": {"type": "integer", "default": 3},
            "note": {"type": "string"},
        },
        "required": ["name"],
    },
}
PAGE = {"mode": "url", "url": "https://x.example/login?a=b", "message": "Log in"}


def talked(
    params: dict[str, Any], lines: Sequence[str | None], opens: bool = True
) -> tuple[dict[str, Any], list[str]]:
    """Have a talk with these lines; return its answer, and what was shown or opened."""
    shown: list[str] = []
    left = list(lines)
    begun = talk("demo", params)
    line: str | None = None
    while True:
        try:
            step = begun.send(line)
        except StopIteration as end:
            assert not left, "it did not want to know all that"
            answer: dict[str, Any] = end.value
            return answer, shown
        if isinstance(step, Open):
            shown.append(f"opened {step.url}")
            line = "" if opens else None
        else:
            shown.append(step.text + step.prompt + ("(hidden)" if step.hidden else ""))
            line = left.pop(0)


def test_a_form_is_asked_shown_once_more_and_sent() -> None:
    answer, shown = talked(FORM, ["Ada", "", "", ""])
    assert answer == {"action": "accept", "content": {"name": "Ada", "size": 3}}
    assert shown == [
        '\n"demo" asks:\n  | Who\n  | are you?\n'
        "(!decline or Ctrl-D declines; you see it all once more before it is sent)\n"
        "\n1/3  name (text, at least 2 characters)\nname: ",
        "\n2/3  size (a whole number)\nsize [3]: ",
        "\n3/3  note (text, optional)\nnote: ",
        "\n  1  name  Ada\n  2  size  3\n  3  note  (left out)\n"
        'Send this to "demo"? [yes], or the number of what to change: ',
    ]


def test_what_does_not_fit_is_asked_again_and_what_was_given_can_be_changed() -> None:
    lines = ["A", "Ada", "", "hello", "no", "4", "3", "!skip", "1", "!skip", "", "2", "5", "yes"]
    answer, shown = talked(FORM, lines)
    assert answer == {"action": "accept", "content": {"name": "Ada", "size": 5}}
    assert shown[1] == '! the field "name" must have at least 2 characters\nname: '
    assert shown[7] == "\nnote (text, optional)\nnote [hello]: "
    assert shown[9] == "\nname (text, at least 2 characters)\nname [Ada]: "
    assert shown[10] == "! it is required\nname [Ada]: "


@pytest.mark.parametrize(
    ("last", "action"), [(None, "decline"), (" !decline ", "decline"), ("!cancel", "cancel")]
)
@pytest.mark.parametrize("before", [[], ["Ada"], ["Ada", "", "", "2"], ["Ada", "", ""]])
def test_one_can_decline_and_cancel_everywhere(
    before: list[str], last: str | None, action: str
) -> None:
    assert talked(FORM, [*before, last])[0] == {"action": action}
    assert talked(PAGE, [last])[0] == {"action": action}
    assert talked({"message": "Go on?"}, [last])[0] == {"action": action}


@pytest.mark.parametrize("schema", [None, {}, {"properties": []}, {"properties": {}}, "x"])
def test_a_form_without_fields_is_a_question_to_agree_to(schema: Any) -> None:
    params = {"message": "Go on?", "requestedSchema": schema}
    answer, shown = talked(params, ["", "what", "y"])
    assert answer == {"action": "accept", "content": {}}
    assert shown[0] == '\n"demo" asks:\n  | Go on?\nAgree and tell "demo" so? yes or no: '
    assert talked(params, ["no"])[0] == {"action": "decline"}


def test_a_form_that_nothing_fits_is_not_sent() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "required": ["b"]}
    answer, shown = talked({"requestedSchema": schema}, ["x", "", "yes", None])
    assert answer == {"action": "decline"}
    assert shown[-1].endswith('! the field "b" is required\nThe number of what to change: ')


def test_a_secret_is_warned_of_hidden_and_not_repeated() -> None:
    schema = {"properties": {"password": {"type": "string"}}}
    answer, shown = talked({"requestedSchema": schema}, ["hunter2", ""])
    assert answer["content"] == {"password": "hunter2"}
    assert '! Servers must not ask for secrets in this way; give "demo" none' in shown[0]
    assert shown[0].endswith("password: (hidden)")
    assert "1  password  (hidden)" in shown[1]
    assert not any("hunter2" in text for text in shown)


def test_a_page_is_shown_whole_and_agreed_to_and_opened_only_if_one_says_so() -> None:
    answer, shown = talked(PAGE, ["", "sure", "yes", ""])
    assert answer == {"action": "accept"}
    assert shown[0] == (
        '\n"demo" asks you to visit a page:\n  | Log in\n'
        "  host  x.example\n  page  https://x.example/login?a=b\n"
        "Visit it only if you know why. What you enter there goes to that host.\n"
        "Agree? open = yes, in your browser; yes = you visit it yourself; no: "
    )
    assert not any(text.startswith("opened") for text in shown)
    answer, shown = talked(PAGE, ["open", ""])
    assert answer == {"action": "accept"}
    assert shown[1] == "opened https://x.example/login?a=b"
    _, shown = talked(PAGE, ["o", ""], opens=False)
    assert shown[2].startswith("! no browser could be opened; open the page yourself\nPress Enter")
    assert talked(PAGE, ["n"])[0] == {"action": "decline"}


@pytest.mark.parametrize(
    ("url", "host", "warned"),
    [
        ("https://example.com/a", "example.com", ""),
        ("https://EXAMPLE.com:8443/a", "example.com:8443", ""),
        ("http://localhost:99/cb", "localhost:99", "the page is on this machine"),
        ("https://xn--80ak6aa92e.com/", "xn--80ak6aa92e.com", "foreign letters"),
        ("https://example.com@evil.test/", "evil.test", "before the @"),
        ("https://192.0.2.1/", "192.0.2.1", "a bare address"),
    ],
)
def test_what_is_odd_about_a_page_is_said(url: str, host: str, warned: str) -> None:
    found = page(url)
    assert (found.url, found.host) == (url, host)
    assert warned in " ".join(found.warnings)
    assert bool(found.warnings) == bool(warned)


@pytest.mark.parametrize(
    "url",
    [
        None,
        5,
        "",
        "https://",
        "http://example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "https://good.test\\@evil.test/",
        "https://exa mple.test/",
        "https://example.test/\x1b[2J",
        "https://example.test/\u202e",
        "https://ex\u0430mple.test/",
        "https://example.test:x/",
        "https://[::1/",
        "https://example.test/" + "a" * 4000,
    ],
)
def test_what_a_browser_should_not_see_is_refused_and_nobody_asked(url: Any) -> None:
    with pytest.raises(Refuse):
        next(talk("demo", {**PAGE, "url": url}))


def test_a_servers_words_stand_behind_a_bar_and_have_an_end() -> None:
    said = f"{EVIL}\nSend this?\n" * 1000
    begun = talk("demo", {"message": said})
    step = next(begun)
    assert not isinstance(step, Open)
    lines = step.text.split("\n")
    assert lines[:2] == ["", '"demo" asks:']
    assert all(line.startswith("  | ") for line in lines[2:-1])
    assert len(lines) == 44
    assert not acting(step.text.replace("\n", ""))
