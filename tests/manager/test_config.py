"""Files as editors have them: tables, comments, variables, and errors that name their place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpclient import ConfigError, Manager, ServerSpec
from mcpclient.manager import config
from tests.conftest import SERVERS


def entry(**members: Any) -> dict[str, Any]:
    return {"mcpServers": {"s": {"command": "x", **members}}}


def refused(document: Any, env: dict[str, str] | None = None) -> ConfigError:
    """Return the error that a document gives."""
    with pytest.raises(ConfigError) as caught:
        config.parse(document, path="file.json", env=env or {})
    assert caught.value.path == "file.json"
    assert str(caught.value).startswith("file.json: ")
    return caught.value


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "servers.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# -- the tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["mcpServers", "servers"])
def test_both_kinds_of_files_are_read(table: str) -> None:
    document = {
        table: {
            "git": {"command": "mcp-server-git", "args": ["--repository", "."]},
            "node": {"type": "stdio", "command": "node", "env": {"A": "1"}, "cwd": "/tmp"},
        },
        "inputs": [{"id": "token"}],  # what else an editor keeps there is not ours
    }
    assert config.parse(document) == {
        "git": ServerSpec("mcp-server-git", ["--repository", "."]),
        "node": ServerSpec("node", env={"A": "1"}, cwd="/tmp"),
    }


def test_a_disabled_server_is_left_out_and_not_even_looked_at() -> None:
    document = {
        "mcpServers": {
            "off": {"disabled": True, "url": "https://example.com", "env": {"A": "${NOT_SET}"}},
            "on": {"disabled": False, "command": "x"},
        }
    }
    assert config.parse(document, env={}) == {"on": ServerSpec("x")}
    assert list(Manager(document["mcpServers"] | {"on": ["x"]})) == ["on"]


def test_an_empty_table_is_no_error() -> None:
    assert config.parse({"mcpServers": {}}) == {}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, 'the file has neither of "mcpServers" and "servers"; it needs one'),
        ({"mcpservers": {}}, 'the file has neither of "mcpServers" and "servers"; it needs one'),
        (
            {"mcpServers": {}, "servers": {}},
            'the file has both of "mcpServers" and "servers"; it needs one',
        ),
        ([], 'the file must hold an object with "mcpServers"'),
        ("text", 'the file must hold an object with "mcpServers"'),
        (None, 'the file must hold an object with "mcpServers"'),
    ],
)
def test_a_document_without_exactly_one_table_is_refused(document: Any, problem: str) -> None:
    caught = refused(document)
    assert (caught.key, caught.problem) == ("", problem)


@pytest.mark.parametrize("table", [[], "text", None, 5])
def test_a_table_is_an_object(table: Any) -> None:
    caught = refused({"servers": table})
    assert str(caught) == "file.json: servers: must be an object of servers by name"


@pytest.mark.parametrize(
    ("members", "key"),
    [
        ({"comand": "y"}, "mcpServers.s.comand"),
        ({"args": ["a", 5]}, "mcpServers.s.args[1]"),
        ({"env": {"A": 5}}, "mcpServers.s.env.A"),
        ({"timeouts": {"cal": 1}}, "mcpServers.s.timeouts.cal"),
        ({"timeouts": {"call": "1"}}, "mcpServers.s.timeouts.call"),
        ({"disabled": "true"}, "mcpServers.s.disabled"),
        ({"url": "https://example.com"}, "mcpServers.s.url"),
        ({"type": "http"}, "mcpServers.s.type"),
        ({"era": "new"}, "mcpServers.s"),
    ],
)
def test_an_error_names_the_file_and_the_place_in_it(members: dict[str, Any], key: str) -> None:
    caught = refused(entry(**members))
    assert caught.key == key
    assert str(caught).startswith(f"file.json: {key}: ")


# -- variables -----------------------------------------------------------------------------

ENV = {"HOME": "/home/ada", "EMPTY": "", "ODD": "${HOME}", "SPACE": " a b "}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${HOME}", "/home/ada"),
        ("${env:HOME}", "/home/ada"),
        ("${HOME}/x/${HOME}", "/home/ada/x//home/ada"),
        ("${SPACE}", " a b "),
        ("${ODD}", "${HOME}"),  # once only: a value is no template
        ("${EMPTY}", ""),
        ("${env:EMPTY}", ""),
        ("${EMPTY:-default}", "default"),
        ("${env:EMPTY:-default}", "default"),
        ("${HOME:-default}", "/home/ada"),
        ("${NONE:-default}", "default"),
        ("${env:NONE:-default}", "default"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b}", "a:-b"),
        ("${NONE:-a b/$c}", "a b/$c"),
        ("$HOME", "$HOME"),
        ("${HOME", "${HOME"),
        ("$${HOME}", "$/home/ada"),
        ("{HOME}", "{HOME}"),
    ],
)
def test_variables_stand_in_any_text_of_an_entry(text: str, value: str) -> None:
    document = entry(args=["-", text], env={"A": text}, cwd=f"/x{text}")
    spec = config.parse(document, env=ENV)["s"]
    assert spec.args == ("-", value)
    assert spec.env == {"A": value}
    assert spec.cwd == f"/x{value}"
    command = config.parse({"servers": {"s": {"command": f"x{text}"}}}, env=ENV)["s"].command
    assert command == f"x{value}"


def test_the_variables_are_the_processes_own_if_none_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OF_THE_PROCESS", "1")
    assert config.parse(entry(args=["${OF_THE_PROCESS}"]))["s"].args == ("1",)


@pytest.mark.parametrize("text", ["${NONE}", "a ${env:NONE} b", "${HOME}${NONE}"])
def test_a_variable_that_is_not_set_is_named_with_its_place(text: str) -> None:
    problem = "the variable 'NONE' is not set; set it, or write ${NONE:-default}"
    for document, key in [
        (entry(args=["a", text]), "mcpServers.s.args[1]"),
        (entry(env={"TOKEN": text}), "mcpServers.s.env.TOKEN"),
        (entry(cwd=text), "mcpServers.s.cwd"),
        ({"servers": {"a b": {"command": text}}}, "servers.a b.command"),
        (entry(timeouts={"call": text}), "mcpServers.s.timeouts.call"),
    ]:
        caught = refused(document, ENV)
        assert (caught.key, caught.problem) == (key, problem)


@pytest.mark.parametrize("text", ["${input:token}", "${command:x.y}", "${config:a}", "${env:A:b}"])
def test_what_only_an_editor_can_resolve_is_refused_by_name(text: str) -> None:
    caught = refused(entry(env={"TOKEN": f"Bearer {text}"}), {"A": "1"})
    assert caught.key == "mcpServers.s.env.TOKEN"
    assert caught.problem == (
        f"{text} cannot be resolved here: only variables of the environment can, as ${{NAME}}, "
        "${env:NAME} or ${NAME:-default}"
    )


@pytest.mark.parametrize("name", ["workspaceFolder", "userHome", "file"])
def test_the_folders_of_an_editor_are_no_variables(name: str) -> None:
    caught = refused(entry(cwd=f"${{{name}}}"))
    assert caught.problem == (
        f"the variable {name!r} is not set; set it, or write ${{{name}:-default}}"
    )


# -- the text ------------------------------------------------------------------------------


def test_comments_and_trailing_commas_are_allowed(tmp_path: Path) -> None:
    text = """
    // a file of VS Code
    {
        /* several
           lines, with { and " in them */
        "servers": { // the table
            "s": {
                "command": "x", /* one */ "args": ["a", /* two */ "b",],
                // "env": {"A": "1"},
                "env": {
                    "B": "2", // last
                },
            },
        },
    }
    // the end"""
    assert config.load(written(tmp_path, text)) == {
        "s": ServerSpec("x", ["a", "b"], env={"B": "2"})
    }


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com//x",
        "/* not a comment */",
        "// neither",
        'a \\" // b',
        "\\\\",
        "\\",
        ",]",
        ", }",
        '",]',
        "a,\n}",
        "/*",
        "*/",
        '"//"',
    ],
)
def test_text_that_looks_like_a_comment_is_left_alone(tmp_path: Path, text: str) -> None:
    document = json.dumps(entry(args=[text, text], env={"A": text}), indent=1)
    spec = config.load(written(tmp_path, document))["s"]
    assert spec.args == (text, text)
    assert spec.env == {"A": text}


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r\n\r\n  "])
def test_byte_order_marks_and_line_ends_of_all_sorts_are_read(
    tmp_path: Path, mark: bytes, end: bytes
) -> None:
    data = mark + end.join([b"{ // c", b'"servers":', b'{"s": {"command": "x"},}}', b""])
    assert config.load(written(tmp_path, data)) == {"s": ServerSpec("x")}


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'servers': {}}", '{"servers": {}} x', '{"servers": {,,}}', "/*", "//"],
)
def test_what_is_not_json_is_refused_as_such(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert str(caught.value).startswith(f"{path}: the file is not JSON: ")


def test_the_line_of_an_error_is_the_line_of_the_file(tmp_path: Path) -> None:
    text = '// one\n/* two\nthree */\n{"servers": {\n// five\n/* six */ "s": {"command" "x"}}}'
    with pytest.raises(ConfigError) as caught:
        config.load(written(tmp_path, text))
    assert "line 6 column 27" in str(caught.value)


def test_nesting_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(written(tmp_path, "[" * 200_000))
    assert "the file is not JSON" in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    with pytest.raises(ConfigError) as caught:
        Manager.from_config(missing)
    assert str(caught.value) == f"{missing}: the file cannot be read: No such file or directory"
    assert caught.value.path == str(missing)
    with pytest.raises(ConfigError) as caught:
        Manager.from_config(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}: the file cannot be read: Is a directory"


@pytest.mark.parametrize("data", [b'{"servers": "\xff"}', '{"servers": {}}'.encode("utf-16")])
def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert str(caught.value) == f"{path}: the file is not UTF-8"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
TRICKY = st.lists(st.sampled_from(["//", "/*", "*/", '"', "\\", ",", "]", "}", "\n", " ", "a"]))


@settings(max_examples=150, deadline=None)
@given(JSON | TRICKY.map("".join), st.sampled_from([None, 0, 1]), st.booleans())
def test_stripping_comments_never_changes_what_a_json_document_means(
    value: Any, indent: int | None, escaped: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert json.loads(config._strip(text)) == value


@settings(max_examples=150, deadline=None)
@given(
    st.lists(TRICKY.map("".join), min_size=1, max_size=4),
    st.lists(TRICKY.map("".join), min_size=6, max_size=6),
)
def test_comments_between_any_two_tokens_change_nothing(
    words: list[str], inside: list[str]
) -> None:
    def comment(number: int) -> str:
        text = inside[number % len(inside)]
        if number % 2:
            return f"/* {text.replace('*/', '* /')} */"
        return "// " + text.replace("\n", "") + "\n"

    tokens = ["{", '"a"', ":", "["]
    for word in words:
        tokens += [json.dumps(word), ","]  # the last comma is one too many
    tokens += ["]", ",", "}"]
    text = "".join(token + comment(number) for number, token in enumerate(tokens))
    assert json.loads(config._strip(text)) == {"a": words}


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | TRICKY.map("".join).map(str.encode))
def test_rubbish_is_refused_and_never_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("rubbish") / "file.json"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert caught.value.path == str(path)


# -- all together --------------------------------------------------------------------------


async def test_a_manager_runs_the_servers_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("SERVERS", str(SERVERS))
    text = """{
        // two servers, one of them off
        "mcpServers": {
            "fake": {
                "command": "${PYTHON}",
                "args": ["${SERVERS}/fake.py", "${MODE:-normal}"],
                "env": {"FAKE_PROMPTS": "${env:RECORD}"},
                "timeouts": {"call": 20, "eof": 1},
            },
            "off": {"command": "nothing", "disabled": true},
        },
    }"""
    record = tmp_path / "prompts"
    monkeypatch.setenv("RECORD", str(record))
    async with Manager.from_config(written(tmp_path, text), dispatch="manual") as manager:
        assert list(manager) == ["fake"]
        fake = manager["fake"]
        assert fake.spec.timeouts.call == 20
        assert (await fake.invoke_tool("echo", {"text": "hi"})).text == "hi"
        await fake.get_prompt("plain")
    assert json.loads(record.read_text()) == {"name": "plain", "arguments": {}}


@pytest.mark.parametrize("dispatch", ["", "never", None, True])
def test_the_options_of_a_manager_are_checked_with_a_file_too(
    tmp_path: Path, dispatch: Any
) -> None:
    path = written(tmp_path, '{"servers": {}}')
    with pytest.raises(ValueError) as caught:
        Manager.from_config(path, dispatch=dispatch)
    assert str(caught.value) == f'dispatch must be "auto" or "manual", not {dispatch!r}'
