"""``logs``: what a server wrote to stderr, from its file or as it writes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from mcpclient.cli import telling
from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import Failure
from mcpclient.cli.shell import completing
from mcpclient.features.loglevel import LEVELS
from mcpclient.ground.errors import LocalProtocolError, McpClientError, ReplyError

if TYPE_CHECKING:
    from io import BufferedReader

    from mcpclient.cli.options import State
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec

# A file has no event that tells of its growth on every system; a person does not see a tenth.
_LOOK = 0.1
# What is read of a file's end for its last lines, and at once while it is followed.
_TAIL = 1024 * 1024
_CHUNK = 64 * 1024


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Run the server, and show what it writes.")
@click.option(
    "-n", "--lines", "count", default=50, show_default=True, help="How many of the last lines."
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    metavar="LEVEL",
    default="info",
    show_default=True,
    help="From which level on it logs.",
)
@click.argument("words", nargs=-1, metavar="SERVER", shell_complete=completing("server"))
@common
@click.pass_context
def logs(
    context: click.Context, follow: bool, count: int, level: str, words: tuple[str, ...]
) -> int:
    """Show what a server wrote to stderr, and its log messages.

    Without -f: the end of the file that "stderr_file" of its entry names, which whoever runs the
    server writes. With -f the server is run here, and what it writes is shown as it comes,
    together with the log messages it sends.
    """
    state = state_of(context)
    if len(words) != (0 if state.adhoc else 1):
        raise click.UsageError(
            "SERVER is missing" if not words and not state.adhoc else "one SERVER only", context
        )
    if not follow:
        return _show_file(state, words, count)
    from mcpclient.cli.running import run

    with tempfile.TemporaryDirectory(prefix="mcpclient-") as folder:

        def change(name: str, spec: ServerSpec) -> ServerSpec:
            if spec.stderr_file is not None or spec.url:
                return spec
            return structs.replace(spec, stderr_file=os.path.join(folder, "stderr"))

        return run(state, lambda each: _follow(each, level), words, lasting=True, change=change)


def _show_file(state: State, words: tuple[str, ...], count: int) -> int:
    source = state.source
    (name,) = source.chosen(words)
    if problem := source.problems.get(name):
        raise problem
    path = source.specs[name].stderr_file
    if path is None:
        where = f'add "stderr_file" to its entry in {source.path}, or ' if source.path else ""
        raise Failure(f'"{name}" keeps no file of its stderr: {where}run it with logs -f')
    lines: list[str] = []
    # The file before counts too if this one was just begun anew.
    for each in (f"{path}.1", path):
        try:
            with open(each, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                lines += file.read(_TAIL).decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            continue
        except OSError as fault:
            raise Failure(f"{each} cannot be read: {fault.strerror}") from None
    shown = lines[-count:] if count > 0 else []
    if state.out.json:
        state.out.document(shown)
    elif shown:
        state.out.text("\n".join(shown))
    else:
        state.out.note(f"{path} is empty, or nobody ran the server yet")
    return 0


async def _follow(session: Session, level: str) -> int:
    server = session.server
    news: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(100)

    async def logged(server: Server, params: Any) -> None:
        await news.put((telling.message(params), {"event": "message", "params": params}))

    async def moved(server: Server, state: str) -> None:
        await news.put((telling.state(server, state), {"event": "state", "state": state}))

    session.manager.on_notification(telling.MESSAGE, logged)
    session.manager.on_state(moved)
    tail = asyncio.create_task(_tail(server.spec.stderr_file, news))
    starting = asyncio.create_task(_start(server, level))
    try:
        while True:
            text, facts = await news.get()
            if facts["event"] == "stderr":
                _line(session, server.name, text)
                continue
            telling.tell(session.out, server.name, text, **facts)
            if facts.get("state") in telling.OVER:
                await asyncio.sleep(2 * _LOOK)  # its last words
                while not news.empty():
                    text, _ = news.get_nowait()
                    _line(session, server.name, text)
                if server.state == "failed":
                    await server.wait_ready()  # raises why
                return 0
    finally:
        for task in (tail, starting):
            task.cancel()
        await asyncio.gather(tail, starting, return_exceptions=True)


def _line(session: Session, server: str, text: str) -> None:
    if session.out.json:
        telling.tell(session.out, server, text, event="stderr", text=text)
    else:
        session.out.text(text)  # as it wrote it, without a time that it may have written itself


async def _start(server: Server, level: str) -> None:
    await server.start()
    try:
        await server.set_log_level(level)
    except (LocalProtocolError, ReplyError):
        pass  # it logs nothing, or always the same; its stderr is shown all the same
    except McpClientError:
        pass  # it ended; the next life is told the level if this one took it


async def _tail(path: str | None, news: asyncio.Queue[tuple[str, dict[str, Any]]]) -> None:
    """Hand on each line that a file grows by, from its present end, over its renewals."""
    if path is None:
        return  # a server behind a URL: somebody else has its stderr
    file, rest = _opened(path), b""
    if file is not None:
        file.seek(0, os.SEEK_END)
    try:
        while True:
            chunk = file.read(_CHUNK) if file is not None else b""
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _TAIL:
                lines, rest = [*lines, rest], b""
            for line in lines:
                text = line.decode("utf-8", "replace").rstrip("\r")
                await news.put((text, {"event": "stderr"}))
            if chunk:
                continue
            if file is None or _number(path) != os.fstat(file.fileno()).st_ino:
                # It is there at last, or was begun anew; the old one was read to its end.
                if file is not None:
                    file.close()
                if (file := _opened(path)) is not None:
                    continue
            await asyncio.sleep(_LOOK)
    finally:
        if file is not None:
            file.close()


def _opened(path: str) -> BufferedReader | None:
    try:
        return open(path, "rb")
    except OSError:
        return None


def _number(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
