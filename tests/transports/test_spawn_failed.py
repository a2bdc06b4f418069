"""A command that cannot be started is refused with what to do about it, before anything waits."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import CapacityLimiter

from mcpclient import Limits, Timeouts, loops
from mcpclient.ground.errors import SpawnFailed
from mcpclient.transports import stdio
from mcpclient.transports.process import Child, Command

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="processes are started only on POSIX so far"
)


def program(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def refused(*argv: str, **options: object) -> SpawnFailed:
    """Return the refusal of a command."""
    with pytest.raises(SpawnFailed) as caught:
        Child(Command(argv, **options), kill_tree=True)  # type: ignore[arg-type]
    return caught.value


@pytest.fixture(autouse=True)
def no_child_was_started(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prove that a refusal leaves no pipe open; the shared fixtures look for the process."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    assert set(os.listdir("/proc/self/fd")) == before


# -- the command ---------------------------------------------------------------------------


def test_a_command_that_is_not_on_path() -> None:
    problem = refused("no-such-program-anywhere", "--flag")
    assert problem.command == "no-such-program-anywhere"
    assert problem.hint == 'install it or give the full path in "command"'
    assert str(problem) == (
        "'no-such-program-anywhere' was not found on PATH; "
        'install it or give the full path in "command"'
    )


@pytest.mark.parametrize(
    ("launcher", "product"),
    [
        ("npx", "Node.js"),
        ("node", "Node.js"),
        ("npm", "Node.js"),
        ("uvx", "uv"),
        ("uv", "uv"),
        ("docker", "Docker"),
        ("deno", "Deno"),
        ("bunx", "Bun"),
        ("pipx", "pipx"),
    ],
)
def test_a_launcher_that_is_missing_names_its_product(
    launcher: str, product: str, tmp_path: Path
) -> None:
    problem = refused(launcher, "server", env={"PATH": str(tmp_path)})
    assert problem.hint == f'install {product} or give the full path in "command"'
    problem.server = "github"
    assert str(problem) == (
        f"'{launcher}' was not found on PATH (server \"github\"); {problem.hint}"
    )


def test_a_whole_command_line_as_the_command_is_told_to_be_split() -> None:
    problem = refused("python3 -m some.server")
    assert str(problem) == (
        "'python3 -m some.server' was not found on PATH; "
        '"command" is the program alone: the words behind \'python3\' are its "args"'
    )
    told = str(refused(f"{sys.executable} server.py"))
    assert told.endswith(f'the words behind {sys.executable!r} are its "args"')
    assert "give the full path" in str(refused("no such program", "--flag"))
    assert "correct the path" in str(refused("/no/such program"))
    assert "give the full path" in str(refused(" "))


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    path = str(tmp_path / "missing")
    problem = refused(path)
    assert problem.command == path
    assert str(problem) == f'{path!r} does not exist; correct the path in "command"'


def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    path = str(program(tmp_path / "plain.py", "print('hello')\n", 0o644))
    problem = refused(path)
    assert problem.command == path
    assert str(problem) == (
        f"{path!r} is not executable; chmod +x it, or run it with its interpreter as the command"
    )


def test_a_directory_is_no_command(tmp_path: Path) -> None:
    problem = refused(str(tmp_path))
    assert str(problem) == f"{str(tmp_path)!r} is a directory; name a program"


def test_a_program_on_path_that_is_not_executable_is_not_found(tmp_path: Path) -> None:
    program(tmp_path / "server", "#!/bin/sh\n", 0o644)
    assert "was not found on PATH" in str(refused("server", env={"PATH": str(tmp_path)}))


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    path = str(program(tmp_path / "server", "#!/no/such/interpreter\n"))
    problem = refused(path)
    assert str(problem) == (
        f"{path!r} cannot be started: No such file or directory; "
        "the program exists, but the interpreter its first line names does not"
    )


def test_a_script_without_a_first_line(tmp_path: Path) -> None:
    path = str(program(tmp_path / "server", "echo hello\n"))
    problem = refused(path)
    assert str(problem) == (
        f"{path!r} cannot be started: Exec format error; "
        "it is no program: add a first line that names its interpreter"
    )


def test_arguments_too_long_for_the_system() -> None:
    problem = refused("/bin/echo", "x" * (4 << 20))
    assert str(problem).startswith("'/bin/echo' cannot be started: Argument list too long; ")
    assert problem.hint


@pytest.mark.parametrize(
    ("argv", "env", "cwd"),
    [
        (("/bin/ec\0ho",), {}, None),
        (("ec\0ho",), {}, None),
        (("/bin/echo", "a\0b"), {}, None),
        (("/bin/echo",), {"NAME": "a\0b"}, None),
        (("/bin/echo",), {"NA\0ME": "b"}, None),
        (("/bin/echo",), {"NA=ME": "b"}, None),
        (("/bin/echo",), {}, "/tm\0p"),
    ],
    ids=["path", "name", "argument", "value", "variable", "equals sign", "cwd"],
)
def test_what_no_system_takes_is_refused(
    argv: tuple[str, ...], env: dict[str, str], cwd: str | None
) -> None:
    problem = refused(*argv, env=env, cwd=cwd)
    assert problem.command == argv[0]
    assert problem.hint
    assert "\0" not in str(problem)


def test_the_null_character_is_named() -> None:
    problem = refused("/bin/echo", "a\0b")
    assert str(problem) == (
        "'/bin/echo' cannot be started: embedded null byte; "
        'correct "command", "args" and "env": no part may hold a null character'
    )


# -- the working directory -----------------------------------------------------------------


def test_a_directory_that_does_not_exist_is_named_before_the_command_is_looked_for() -> None:
    problem = refused("no-such-program-anywhere", cwd="/no/such/directory")
    assert str(problem) == (
        "the working directory '/no/such/directory' does not exist; "
        'give an existing directory in "cwd"'
    )
    assert problem.command == "no-such-program-anywhere"


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    path = str(program(tmp_path / "file", ""))
    problem = refused("/bin/true", cwd=path)
    assert str(problem) == (
        f'the working directory {path!r} is not a directory; give an existing directory in "cwd"'
    )


# -- what is found, and where --------------------------------------------------------------


def output(*argv: str, **options: object) -> str:
    """Run a command to its end and return what it wrote."""
    child = Child(Command(argv, **options), kill_tree=True)  # type: ignore[arg-type]
    child.close_stdin()
    os.set_blocking(child.stdout, True)
    found = b""
    while chunk := os.read(child.stdout, 65536):
        found += chunk
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.reap() is not None
    child.close()
    return found.decode().strip()


def test_the_command_is_looked_for_on_the_path_that_it_gets(tmp_path: Path) -> None:
    program(tmp_path / "only-here", "#!/bin/sh\necho found\n")
    assert "was not found on PATH" in str(refused("only-here"))
    assert output("only-here", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}) == "found"
    # An own PATH is the whole PATH, also for what is elsewhere.
    assert "was not found on PATH" in str(refused("true", env={"PATH": str(tmp_path)}))
    assert "was not found on PATH" in str(refused("true", env={"PATH": ""}))


def test_the_host_s_variables_are_inherited_and_overlaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "from the host")
    monkeypatch.setenv("OVERLAID", "from the host")
    script = 'echo "$KEPT|$OVERLAID|$ADDED"'
    env = {"OVERLAID": "own", "ADDED": "ünï"}
    assert output("sh", "-c", script, env=env) == "from the host|own|ünï"
    assert output("/bin/sh", "-c", script, env=env, inherit_env=False) == "|own|ünï"


def test_without_inheritance_a_program_is_found_on_the_default_path() -> None:
    assert output("sh", "-c", "echo here", inherit_env=False) == "here"


def test_a_path_is_taken_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "server", "#!/bin/sh\npwd\n")
    assert output("bin/server", cwd=str(tmp_path)) == str(tmp_path)
    assert output("./bin/server", cwd=str(tmp_path)) == str(tmp_path)
    assert "does not exist" in str(refused("bin/server"))


def test_a_tilde_is_the_user_s_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program(tmp_path / "server", "#!/bin/sh\necho at home\n")
    assert output("~/server") == "at home"


def test_a_host_whose_directory_was_deleted_starts_servers_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, doomed = tmp_path / "home", tmp_path / "doomed"
    home.mkdir()
    doomed.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(doomed)
    doomed.rmdir()
    assert output("sh", "-c", "pwd") == str(home)


def test_a_process_has_its_three_pipes_and_nothing_else_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        listed = output("sh", "-c", "ls -l /proc/$$/fd")
    kinds = [name.rpartition(" -> ")[2] for name in listed.splitlines() if " -> " in name]
    assert len(kinds) >= 3
    assert not [kind for kind in kinds if str(tmp_path) in kind]
    assert sum(kind.startswith("pipe:") for kind in kinds) == 3


def test_a_host_without_descriptors_to_spare_is_told_so() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    filled = [os.open(os.devnull, os.O_RDONLY)]
    while filled[-1] <= highest:
        filled.append(os.open(os.devnull, os.O_RDONLY))
    # Six ends of pipes, and two more in which the new process tells how it started.
    problems: list[SpawnFailed | None] = []
    try:
        for spare in range(9):
            resource.setrlimit(resource.RLIMIT_NOFILE, (filled[-1] + 1 + spare, hard))
            try:
                Child(Command(("/bin/true",)), kill_tree=True).abandon()
                problems.append(None)
            except SpawnFailed as problem:
                problems.append(problem)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in filled:
            os.close(fd)
    assert problems[8] is None
    assert {str(problem) for problem in problems[:8]} == {
        "'/bin/true' cannot be started: Too many open files; "
        "close what is not needed, or raise the limits of this user"
    }


async def test_the_refusal_comes_out_of_the_thread_that_spawns() -> None:
    with pytest.raises(SpawnFailed) as caught:
        await stdio.spawn(
            Command(("no-such-program-anywhere",)),
            loop=loops.current(),
            limiter=CapacityLimiter(1),
            timeouts=Timeouts(),
            limits=Limits(),
            kill_tree=True,
        )
    assert caught.value.command == "no-such-program-anywhere"
