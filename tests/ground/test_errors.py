"""Every error class: its place in the tree, its facts, and one printable line that is never empty.

The tree is read from the module's own docstring, so that the page and the classes agree.
"""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcpclient
from mcpclient.ground import errors
from mcpclient.ground.errors import (
    AccessRefused,
    CallCancelled,
    CallLost,
    CallTimedOut,
    ConfigError,
    HttpError,
    InputRefused,
    LocalProtocolError,
    McpClientError,
    OpeningFailed,
    OutputInvalid,
    ProtocolError,
    RemoteProtocolError,
    ReplyError,
    RestartsExhausted,
    ServerDied,
    ServerUnavailable,
    SpawnFailed,
    ToolError,
    UseAfterClose,
    last_words,
    odd_words,
    timed_out,
)
from mcpclient.ground.exits import Exit

EVIL = "x\x1b[2J\x1b]0;t\x07\n\u2028\ud83d"


def made(text: str) -> list[McpClientError]:
    """Return one error of every class, with a text wherever it takes one."""
    facts: Any = {"method": text, "server": text}
    return [
        McpClientError(text),
        ProtocolError(text),
        LocalProtocolError(text),
        RemoteProtocolError(text),
        OutputInvalid([text], None, reason=text, tool=text, server=text),
        ReplyError(-32602, text, {"text": text}, **facts),
        ToolError(text, None, tool=text, server=text),
        CallLost(text, **facts),
        CallTimedOut(text, **facts),
        CallCancelled(text, maybe_done=False, **facts),
        HttpError(500, text, body=text, **facts),
        ServerDied(Exit(code=1), text, **facts),
        ServerUnavailable(text, server=text),
        SpawnFailed(text, command=text, hint=text, server=text),
        OpeningFailed(text, server=text, exit=Exit(signal=9), stderr_tail=text),
        AccessRefused(401, [text], body=text, **facts),
        RestartsExhausted(text, [text], server=text),
        InputRefused(text, {text: {"method": text}}, text, server=text, reason=text),
        UseAfterClose(text),
        ConfigError(text, key=text, path=text),
    ]


def tree() -> dict[str, str]:
    """Return each class of the docstring's tree and its parent there."""
    parents: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines()[2:]:
        name = line.split()[0]
        depth = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parents[name] = stack[-1][1] if stack else "Exception"
        stack.append((depth, name))
    return parents


def test_the_tree_is_as_the_docstring_draws_it() -> None:
    drawn = tree()
    assert set(drawn) == set(errors.__all__)
    for name, parent in drawn.items():
        assert getattr(errors, name).__bases__[0].__name__ == parent, name


def test_every_error_is_public_and_documented() -> None:
    for name in errors.__all__:
        assert getattr(mcpclient, name) is getattr(errors, name)
        assert getattr(errors, name).__doc__


def test_a_time_out_is_also_pythons_own() -> None:
    assert issubclass(CallTimedOut, TimeoutError)
    assert not issubclass(CallCancelled, TimeoutError)


def test_each_class_is_tried_here() -> None:
    assert {type(error).__name__ for error in made("x")} == set(errors.__all__)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_whatever_the_words_the_text_is_one_printable_line(words: str) -> None:
    for error in made(words):
        text = str(error)
        assert text.strip(), type(error)
        text.encode()
        assert not any(ord(one) < 32 and one not in "\t\n" for one in text), type(error)
        if not isinstance(error, ToolError):
            assert len(text.splitlines()) == 1, type(error)


@pytest.mark.parametrize("words", ["", " ", "\t"])
def test_without_words_the_text_is_still_not_empty(words: str) -> None:
    for error in made(words):
        assert str(error).strip(), type(error)
    bare: list[McpClientError] = [McpClientError(), UseAfterClose(), LocalProtocolError()]
    assert [str(error) for error in bare] == [
        "McpClientError",
        "UseAfterClose",
        "LocalProtocolError",
    ]
    assert str(ServerUnavailable("")) == "ServerUnavailable"
    assert str(ConfigError("")) == "ConfigError"


def test_a_servers_escape_codes_are_escaped_in_the_text_and_kept_in_the_facts() -> None:
    refused = ReplyError(1, EVIL, method="tools/call", server="git")
    assert refused.message == EVIL
    assert str(refused) == ('[1] x\\x1b[2J\\x1b]0;t\\x07\\n\\u2028\\ud83d (tools/call on "git")')
    failed = ToolError(EVIL, None)
    assert failed.message == EVIL
    assert str(failed) == "x\\x1b[2J\\x1b]0;t\\x07\n\\u2028\\ud83d"


def test_a_copy_says_the_same_and_is_another() -> None:
    for error in made("words"):
        try:
            raise error
        except McpClientError as raised:
            copy = raised.again()
        assert type(copy) is type(error)
        assert copy is not error
        assert str(copy) == str(error)
        assert copy.args == error.args
        assert vars(copy) == vars(error)
        assert copy.__traceback__ is None
        assert error.__traceback__ is not None


def test_raising_a_copy_leaves_the_first_ones_traceback_alone() -> None:
    first = CallLost("gone", method="tools/list")
    for _ in range(3):
        with pytest.raises(CallLost) as caught:
            raise first.again()
        assert len(traceback.extract_tb(caught.value.__traceback__)) == 1
    assert first.__traceback__ is None


def test_the_servers_no_carries_code_message_and_data() -> None:
    error = ReplyError(-32602, "no such tool", [1], method="tools/call", server="git")
    assert (error.code, error.message, error.data) == (-32602, "no such tool", [1])
    assert (error.method, error.server) == ("tools/call", "git")
    assert str(error) == '[-32602] no such tool (tools/call on "git")'
    assert str(ReplyError(-1, "")) == "[-1] no message"
    assert str(ReplyError(-1, "no", method="ping")) == "[-1] no (ping)"


def test_a_tools_error_has_the_tools_own_words_and_the_whole_result() -> None:
    result = object()
    error = ToolError("first\nsecond", result, tool="echo", server="git")
    assert str(error) == "first\nsecond"
    assert error.result is result
    assert (error.tool, error.server) == ("echo", "git")
    assert str(ToolError("", result)) == "tool errored (empty text)"


def test_a_lost_call_says_whether_it_may_have_been_done() -> None:
    unknown = CallLost("the pipe broke", method="tools/call", server="git")
    assert unknown.maybe_done is True
    assert str(unknown) == (
        'tools/call on "git": the pipe broke; the server may have carried it out'
    )
    unsent = CallTimedOut("no answer within 5 s", maybe_done=False)
    assert unsent.maybe_done is False
    assert (unsent.problem, unsent.method, unsent.server) == ("no answer within 5 s", "", "")
    assert str(unsent) == (
        "call: no answer within 5 s; the request was never sent, so it is safe to repeat"
    )


def test_a_death_carries_the_exit_and_the_last_words() -> None:
    error = ServerDied(Exit(code=3), "Traceback\nKeyError: 'x'\n", method="ping", server="git")
    assert error.exit == Exit(code=3)
    assert error.stderr_tail == "Traceback\nKeyError: 'x'\n"
    assert str(error) == (
        "ping on \"git\": the server died (exit code 3) (stderr: Traceback | KeyError: 'x'); "
        "the server may have carried it out"
    )


def test_a_server_that_cannot_be_started_names_the_command_and_the_next_step() -> None:
    error = SpawnFailed(
        "'npx' was not found on PATH",
        command="npx",
        hint='install Node.js or give the full path in "command"',
        server="github",
    )
    assert (error.command, error.server) == ("npx", "github")
    assert str(error) == (
        "'npx' was not found on PATH (server \"github\"); "
        'install Node.js or give the full path in "command"'
    )


def test_a_failed_opening_carries_what_is_known() -> None:
    error = OpeningFailed("no common version", server="git", stderr_tail="old\n", final=True)
    assert (error.exit, error.final) == (None, True)
    assert str(error) == 'server "git": no common version (stderr: old)'
    assert OpeningFailed("x").final is False


def test_exhausted_restarts_carry_the_deaths() -> None:
    error = RestartsExhausted("it ended 6 times in a row", ["a", "b"], server="git")
    assert error.incidents == ("a", "b")
    assert str(error) == ('server "git": it ended 6 times in a row; call start() to try again')


def test_refused_input_names_what_was_asked_for_and_keeps_what_answers_need() -> None:
    requests = {
        "a": {"method": "elicitation/create", "params": {"message": "Name?"}},
        "b": {"method": "roots/list"},
    }
    error = InputRefused("tools/call", requests, "opaque", server="git")
    assert error.asks == ("elicitation/create", "roots/list")
    assert (error.method, error.server, error.reason) == ("tools/call", "git", "")
    assert (error.requests, error.state) == (requests, "opaque")
    assert str(error) == (
        'tools/call on "git": the server asks for elicitation/create, roots/list; '
        "nothing here answers that"
    )
    assert str(InputRefused("tools/call", {}, reason="ten rounds are enough")) == (
        "tools/call: the server asks for another round; ten rounds are enough"
    )


def test_a_configuration_error_tells_file_place_and_problem() -> None:
    error = ConfigError("must be a list", key="servers.git.args", path="mcp.json")
    assert (error.path, error.key, error.problem) == (
        "mcp.json",
        "servers.git.args",
        "must be a list",
    )
    assert str(error) == "mcp.json: servers.git.args: must be a list"
    assert str(ConfigError("unknown", key="servers")) == "servers: unknown"
    assert str(ConfigError("unknown")) == "unknown"


def test_a_long_problem_does_not_swallow_what_to_do_next() -> None:
    text = str(CallLost("\x1b" * 9000, method="ping"))
    assert text.endswith("… (9000 characters); the server may have carried it out")
    assert str(RestartsExhausted("y" * 9000, [])).endswith("; call start() to try again")


def test_last_words_are_the_last_three_lines_that_say_something() -> None:
    assert last_words("") == last_words(" \n\n") == ""
    assert last_words("one\ntwo\n  three \nfour\n\n") == " (stderr: two | three | four)"
    assert last_words("\x1b[31mred\x07") == " (stderr: \\x1b[31mred\\x07)"
    assert last_words("x" * 1000) == f" (stderr: {'x' * 400})"


def test_noise_is_shown_as_a_short_quotation() -> None:
    assert odd_words("") == ""
    assert odd_words("starting\n\x1b[0m") == (
        " (not a message of the protocol: 'starting\\n\\x1b[0m')"
    )
    assert len(odd_words("n" * 5000)) < 400


def test_a_time_out_tells_how_long_what_for_and_what_the_server_said_aside() -> None:
    assert timed_out(5, "") == "no answer within 5 s"
    assert timed_out(0.25, "(progress or not)", "why\n", "log") == (
        "no answer within 250 ms (progress or not) (not a message of the protocol: 'log') "
        "(stderr: why)"
    )
