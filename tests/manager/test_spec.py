"""What may be written for a server, and how everything else is refused by name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpclient import ConfigError, Limits, Manager, RestartPolicy, ServerSpec, Timeouts
from mcpclient.manager.spec import spec_of

# -- the forms -----------------------------------------------------------------------------


def test_an_argv_list_a_mapping_and_a_spec_mean_the_same() -> None:
    spec = ServerSpec("node", ["server.js", "--fast"])
    assert spec_of(["node", "server.js", "--fast"]) == spec
    assert spec_of(("node", "server.js", "--fast")) == spec
    assert spec_of({"command": "node", "args": ["server.js", "--fast"]}) == spec
    assert spec_of({"command": "node", "args": ("server.js", "--fast"), "type": "stdio"}) == spec
    assert spec_of(spec) is spec
    assert spec.argv == ("node", "server.js", "--fast")


def test_all_that_is_left_out_has_its_default() -> None:
    spec = spec_of(["node"])
    assert (spec.args, spec.env, spec.cwd, spec.inherit_env) == ((), {}, None, True)
    assert (spec.start, spec.era, spec.kill_tree) == ("lazy", "auto", True)
    assert spec.restart == RestartPolicy()
    assert spec.restart.when == "on_crash"
    assert (spec.timeouts, spec.limits) == (Timeouts(), Limits())
    # What is null in a file is left out.
    assert spec_of({"command": "node", "args": None, "env": None, "cwd": None}) == spec


def test_a_mapping_may_hold_every_option_nested_or_ready_made() -> None:
    spec = ServerSpec(
        "node",
        ["x"],
        env={"A": "1"},
        cwd="/tmp",
        inherit_env=False,
        start="eager",
        restart=RestartPolicy(when="always", burst=2, first=0.1),
        timeouts=Timeouts(open=5, call=None),
        limits=Limits(frame=None, inbox=7),
        era="2025-06-18",
        kill_tree=False,
    )
    nested = {
        "command": "node",
        "args": ["x"],
        "env": {"A": "1"},
        "cwd": "/tmp",
        "inherit_env": False,
        "start": "eager",
        "restart": {"when": "always", "burst": 2, "first": 0.1},
        "timeouts": {"open": 5, "call": None},
        "limits": {"frame": None, "inbox": 7},
        "era": "2025-06-18",
        "kill_tree": False,
        "disabled": False,
    }
    assert spec_of(nested) == spec
    ready = {**nested, "restart": spec.restart, "timeouts": spec.timeouts, "limits": spec.limits}
    assert spec_of(ready) == spec


def test_paths_are_taken_for_arguments_and_directories() -> None:
    spec = ServerSpec("node", [Path("/a/b")], cwd=Path("/tmp"))  # type: ignore[list-item, arg-type]
    assert (spec.args, spec.cwd) == (("/a/b",), "/tmp")
    assert spec_of({"command": Path("/bin/x"), "args": [Path("a")], "cwd": Path("/tmp")}) == (
        ServerSpec("/bin/x", ["a"], cwd="/tmp")
    )
    assert spec_of([Path("/bin/x"), Path("a")]) == ServerSpec("/bin/x", ["a"])


def test_a_spec_is_frozen_and_its_options_are_named() -> None:
    arguments = ["a"]
    spec = ServerSpec("node", arguments)
    arguments.append("b")
    assert spec.args == ("a",)
    for name in ("command", "args", "start", "timeouts"):
        with pytest.raises(AttributeError):
            setattr(spec, name, "x")
    with pytest.raises(TypeError):
        ServerSpec("node", ["a"], {"A": "1"})  # type: ignore[misc]
    for struct in (spec.timeouts, spec.limits, spec.restart):
        with pytest.raises(AttributeError):
            setattr(struct, struct.__struct_fields__[0], 1)
    for kind in (Timeouts, Limits, RestartPolicy):
        with pytest.raises(TypeError):
            kind(5)  # type: ignore[call-arg]


# -- wrong values --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("", {}, "command must be a program's name or path, not ''"),
        (None, {}, "command must be a program's name or path, not None"),
        (5, {}, "command must be text, not 5"),
        ("a\0b", {}, "command must not hold a null character"),
        ("x", {"args": "a b"}, "args must be a list of strings, not 'a b'"),
        ("x", {"args": 5}, "args must be a list of strings, not 5"),
        ("x", {"args": {"a": 1}}, "args must be a list of strings, not {'a': 1}"),
        ("x", {"args": ["a", 5]}, "args[1] must be text, not 5"),
        ("x", {"args": [b"a"]}, "args[0] must be text, not b'a'"),
        ("x", {"args": ["a\0"]}, "args[0] must not hold a null character"),
        ("x", {"cwd": 5}, "cwd must be text, not 5"),
        ("x", {"env": {"PORT": 8080}}, "env.PORT must be text, not int"),
        ("x", {"env": {"A": "secret\0"}}, "env.A must not hold a null character"),
        ("x", {"env": {"A=B": ""}}, "env: 'A=B' cannot be the name of a variable"),
        ("x", {"env": {"": ""}}, "env: '' cannot be the name of a variable"),
        ("x", {"env": {5: ""}}, "env: 5 cannot be the name of a variable"),
        ("x", {"env": ["A=secret"]}, "env must be of the type Mapping, not list"),
        ("x", {"inherit_env": "no"}, "inherit_env must be of the type bool, not 'no'"),
        ("x", {"kill_tree": 1}, "kill_tree must be of the type bool, not 1"),
        ("x", {"restart": "always"}, "restart must be of the type RestartPolicy, not 'always'"),
        ("x", {"timeouts": 5}, "timeouts must be of the type Timeouts, not 5"),
        ("x", {"limits": None}, "limits must be of the type Limits, not None"),
        ("x", {"start": "now"}, 'start must be "lazy" or "eager", not \'now\''),
    ],
)
def test_a_wrong_value_is_refused_by_its_name_when_the_spec_is_made(
    command: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError) as caught:
        ServerSpec(command, **options)
    assert str(caught.value) == said
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("era", ["modern", "2099-01-01", "", None, 5])
def test_an_unknown_era_is_refused_with_all_that_are_known(era: Any) -> None:
    with pytest.raises(ValueError) as caught:
        ServerSpec("x", era=era)
    assert str(caught.value) == (
        'era must be "auto", "handshake", "stateless" or one of 2024-11-05, 2025-03-26, '
        f"2025-06-18, 2025-11-25, 2026-07-28, not {era!r}"
    )


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (Timeouts, {"call": 0}, "Timeouts.call must be above 0 seconds, not 0"),
        (Timeouts, {"eof": -1.5}, "Timeouts.eof must be above 0 seconds, not -1.5"),
        (Limits, {"inbox": 0}, "Limits.inbox must be at least 1, not 0"),
        (Limits, {"cache_bytes": -1}, "Limits.cache_bytes must be at least 1, not -1"),
        (
            RestartPolicy,
            {"when": "sometimes"},
            "RestartPolicy.when must be one of on_crash, always, never, not 'sometimes'",
        ),
        (RestartPolicy, {"burst": -1}, "RestartPolicy.burst must not be negative, not -1"),
        (RestartPolicy, {"jitter": 1.5}, "RestartPolicy.jitter must be from 0 to 1, not 1.5"),
    ],
)
def test_options_out_of_their_range_are_refused_by_name(
    kind: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError) as caught:
        kind(**options)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("entry", "key", "problem"),
    [
        ("node server.js", "s", "a command is a list of words, not one string: write "
         "['node', 'server.js']"),
        ([], "s", "the command is empty"),
        (["node", 5], "s.args[0]", "Expected `str`, got `int`"),
        ([5], "s.command", "Expected `str`, got `int`"),
        (5, "s", "a server is a ServerSpec, a list of words or a mapping, not int"),
        (None, "s", "a server is a ServerSpec, a list of words or a mapping, not NoneType"),
        ({}, "s", '"command" is missing, or "url" for a server that runs elsewhere'),
        ({"command": None}, "s", '"command" is missing, or "url" for a server that runs '
         "elsewhere"),
        ({"command": ""}, "s", "command must be a program's name or path, not ''"),
        ({"command": "x", "args": "a b"}, "s.args", "Expected `array`, got `str`"),
        ({"command": "x", "args": [1.5]}, "s.args[0]", "Expected `str`, got `float`"),
        ({"command": "x", "cwd": 5}, "s.cwd", "Expected `str | null`, got `int`"),
        ({"command": "x", "env": {"PORT": 80}}, "s.env.PORT", "must be text, not int: write it in "
         "quotes"),
        ({"command": "x", "env": {"A": None}}, "s.env.A", "must be text, not NoneType: write it "
         "in quotes"),
        ({"command": "x", "env": "A=1"}, "s.env", "Expected `object`, got `str`"),
        ({"command": "x", "restart": "always"}, "s.restart", "Expected `object`, got `str`"),
        ({"command": "x", "restart": {"when": "sometimes"}}, "s.restart",
         "RestartPolicy.when must be one of on_crash, always, never, not 'sometimes'"),
        ({"command": "x", "timeouts": {"call": "5"}}, "s.timeouts.call",
         "Expected `float | null`, got `str`"),
        ({"command": "x", "timeouts": {"call": -1}}, "s.timeouts",
         "Timeouts.call must be above 0 seconds, not -1.0"),
        ({"command": "x", "limits": {"frame": 1.5}}, "s.limits.frame",
         "Expected `int | null`, got `float`"),
        ({"command": "x", "type": "sse"}, "s.type", "type 'sse' goes with an http or https url"),
        ({"command": "x", "disabled": "yes"}, "s.disabled", "must be true or false, not 'yes'"),
        ({"command": "x", "disabled": 1}, "s.disabled", "must be true or false, not 1"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_be_meant_is_refused_with_its_place(
    entry: Any, key: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Manager({"s": entry})
    assert (caught.value.key, caught.value.problem) == (key, problem)
    assert caught.value.path == ""
    assert str(caught.value) == f"{key}: {problem}"


@pytest.mark.parametrize(
    ("entry", "key", "meant"),
    [
        ({"comand": "x"}, "s.comand", "command"),
        ({"command": "x", "arg": []}, "s.arg", "args"),
        ({"command": "x", "environment": {}}, "s.environment", None),
        ({"command": "x", "Env": {}}, "s.Env", "env"),
        ({"command": "x", "timeouts": {"cal": 5}}, "s.timeouts.cal", "call"),
        ({"command": "x", "restart": {"wen": "never"}}, "s.restart.wen", "when"),
        ({"command": "x", "limits": {"cache_byte": 1}}, "s.limits.cache_byte", "cache_bytes"),
        ({"command": "x", "zzz": 1}, "s.zzz", None),
        ({"command": "x", 5: 1}, "s.5", None),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_may_be_meant(
    entry: Any, key: str, meant: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        Manager({"s": entry})
    assert caught.value.key == key
    assert caught.value.problem.startswith("unknown key ")
    if meant is not None:
        assert caught.value.problem.endswith(f"; did you mean {meant!r}?")
    else:
        assert " (known: " in caught.value.problem
        assert "inherit_env" in caught.value.problem


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", 5, None])
def test_a_servers_name_is_printable_text(name: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Manager({name: ["x"]})
    assert str(caught.value) == f"a server's name is printable text, not {name!r}"


# -- what the process gets -----------------------------------------------------------------

# Tells where it runs and with what, as the text of a tool.
TELL = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        facts = {"args": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}
        _wire.send(_wire.text(message["id"], json.dumps(facts)))
    else:
        _wire.reply(message)
"""
WIRE = str(Path(__file__).resolve().parents[2] / "fixtures" / "servers")


async def told(manager: Manager, *args: str, **options: Any) -> dict[str, Any]:
    argv = ["-c", TELL, WIRE, *args]
    server = await manager.add("s", ServerSpec(sys.executable, argv, **options))
    return dict(await server.request("tools/call", {"name": "sin"}))


async def test_the_process_gets_its_arguments_directory_and_variables(
    manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "1")
    monkeypatch.setenv("OVERRIDDEN", "by the host")
    words = ["a b", "", "ü", "$HOME", "'", '"', "*"]
    env = {"OVERRIDDEN": "by the spec", "MINE": "ü=1"}
    answer = await told(manager, *words, cwd=str(tmp_path), env=env)
    facts = json.loads(answer["content"][0]["text"])
    assert facts["args"] == words
    assert facts["cwd"] == str(tmp_path.resolve())
    assert facts["env"]["OF_THE_HOST"] == "1"
    assert facts["env"]["OVERRIDDEN"] == "by the spec"
    assert facts["env"]["MINE"] == "ü=1"
    await manager.remove("s")
    answer = await told(manager, env={"MINE": "1"}, inherit_env=False)
    facts = json.loads(answer["content"][0]["text"])
    assert facts["env"].pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"  # the interpreter's own doing
    assert facts["env"] == {"MINE": "1"}
