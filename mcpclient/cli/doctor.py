"""``doctor``: each thing that may be wrong with a server, looked at in turn, and what to do."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli import masks, reaching
from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import UNREACHABLE, USAGE, failure
from mcpclient.cli.shell import completing
from mcpclient.ground.errors import (
    AccessRefused,
    CallTimedOut,
    McpClientError,
    OpeningFailed,
    RestartsExhausted,
)
from mcpclient.ground.text import printable, seconds, size
from mcpclient.manager import config

if TYPE_CHECKING:
    from mcpclient.cli.options import State
    from mcpclient.cli.out import Out
    from mcpclient.cli.running import Session
    from mcpclient.cli.sources import Source
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec


@click.command()
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completing("servers"))
@common
@click.pass_context
def doctor(context: click.Context, names: tuple[str, ...]) -> int:
    """Find out why a server does not work, and what to do.

    Tells which file is read, what its variables stand for (secrets masked), whether a command is
    on PATH or a URL can be reached, whether the server starts, how long that takes, what it
    speaks and what it offers.
    """
    from mcpclient.cli.running import run

    state = state_of(context)
    if not state.json:
        _tell_source(state.out, state.source)
    return run(state, lambda session: _doctor(session, state), names)


@dataclass
class Report:
    """What was found out about one server.

    Attributes:
        name: Its name.
        hidden: What must be in no text.
        steps: What was looked at: ``ok``, ``fail`` or ``note``, what, and how it is.
        code: The exit code that this amounts to.
    """

    name: str
    hidden: set[str] = field(default_factory=set)
    steps: list[tuple[str, str, str]] = field(default_factory=list)
    code: int = 0

    def add(self, mark: str, what: str, text: str) -> None:
        """Take note of one thing."""
        self.steps.append((mark, what, masks.redacted(text, self.hidden)))

    def fail(self, what: str, text: str, todo: str = "", code: int = UNREACHABLE) -> None:
        """Take note of what is wrong, and what to do."""
        self.add("fail", what, text)
        if todo:
            self.add("", "do", todo)
        self.code = max(self.code, code)


def _tell_source(out: Out, source: Source) -> None:
    if source.path is None:
        return
    why = {"-c": "given with -c", "found": "the first that was found"}.get(source.why, source.why)
    count = len(source.entries)
    out.row("config", f"{source.path} ({why}), {count} server{'s' * (count != 1)}")
    for other in source.others:
        if other != source.path:
            out.row("      ", f"{other} exists too, and is not read")
    for name in source.disabled:
        out.row("      ", f'"{name}" is disabled')


async def _doctor(session: Session, state: State) -> int:
    out = session.out
    # At the same time, told in order: each as soon as those before it are.
    looking = [asyncio.create_task(_look(session, state, name)) for name in session.names]
    reports = []
    try:
        for task in looking:
            report = await task
            reports.append(report)
            if not out.json:
                out.text("")
                out.heading(report.name)
                for step in report.steps:
                    out.step(*step)
    finally:
        for task in looking:
            task.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
    if out.json:
        source = session.source
        servers = [
            {
                "server": report.name,
                "ok": report.code == 0,
                "steps": [{"mark": m, "what": w, "text": t} for m, w, t in report.steps],
            }
            for report in reports
        ]
        out.document(
            {
                "config": source.path,
                "why": source.why,
                "not_read": [one for one in source.others if one != source.path],
                "disabled": source.disabled,
                "servers": servers,
            }
        )
    return max((report.code for report in reports), default=0)


async def _look(session: Session, state: State, name: str) -> Report:
    report = Report(name)
    source = session.source
    entry = source.entries.get(name)
    _variables(report, entry, state)
    if (problem := source.problems.get(name)) is not None:
        if not report.code:  # else it is about a variable that was told of
            where = f"{problem.key}: " if problem.key else ""
            report.fail("entry", f"{where}{problem.problem}", code=USAGE)
        return report
    spec = session.manager[name].spec
    report.hidden |= masks.secrets_of(spec.env)
    url = spec.url
    if url:
        report.hidden |= masks.secrets_of(dict(spec.headers or {}), all_of_them=True)
        if spec.headers:
            report.add("ok", "headers", ", ".join(spec.headers) + " (values not shown)")
        for step in await reaching.look(url):
            report.add(*step)
    else:
        _command(report, spec)
    await _start(report, session, name)
    return report


def _variables(report: Report, entry: Any, state: State) -> None:
    told = config.variables_of(entry)
    values = {name: state.environment.get(name, "") for name in told}
    report.hidden |= masks.secrets_of(values)
    confided = {name: values[name] for name in _confided(entry)}
    report.hidden |= masks.secrets_of(confided, all_of_them=True)
    for name, default in told.items():
        if name in confided and values[name]:
            where = "-e" if name in state.variables else "environment"
            report.add(
                "ok", "variable", f"{name} = {masks.masked('token', values[name])} ({where})"
            )
            continue
        if name in state.variables:
            report.add("ok", "variable", f"{name} = {masks.masked(name, values[name])} (-e)")
        elif values[name] or (name in state.environment and default is None):
            shown = masks.masked(name, values[name])
            report.add("ok", "variable", f"{name} = {shown} (environment)")
        elif default is not None:
            shown = masks.masked(name, default)
            report.add("ok", "variable", f"{name} = {shown} (not set; the file's default)")
        else:
            report.fail("variable", f"{name} is not set", f"export {name}=…, or -e {name}=…", USAGE)


def _confided(entry: Any) -> set[str]:
    """Return the variables that stand where secrets do, whatever they are called themselves."""
    if not isinstance(entry, Mapping):
        return set()
    found = set(config.variables_of(entry.get("headers")))
    env, args = entry.get("env"), entry.get("args")
    for name, value in env.items() if isinstance(env, Mapping) else ():
        if masks.is_secret(str(name), ""):
            found |= set(config.variables_of(value))
    before = ""
    for word in args if isinstance(args, list) else ():
        named = str(word).split("$", 1)[0]  # --token=${X}
        if masks.is_secret(named, "") or (before.startswith("-") and masks.is_secret(before, "")):
            found |= set(config.variables_of(word))
        before = str(word)
    return found


def _command(report: Report, spec: ServerSpec) -> None:
    environment = {**(os.environ if spec.inherit_env else {}), **spec.env}
    shown = masks.command(spec.argv, report.hidden)
    if "/" in spec.command:
        report.add("ok", "command", shown)
        return
    found = shutil.which(spec.command, path=environment.get("PATH"))
    if found is not None:  # else the attempt to start it says so, and what to do
        report.add("ok", "command", f"{shown} ({found})")


async def _start(report: Report, session: Session, name: str) -> None:
    server = session.manager[name]
    began = time.monotonic()
    try:
        await server.start()
    except McpClientError as problem:
        _explain(report, server, problem)
        return
    took = seconds(time.monotonic() - began)
    pid = f", pid {server.pid}" if server.pid is not None else ""
    report.add("ok", "starts", f"in {took}{pid}")
    who = " ".join(str(server.info[key]) for key in ("name", "version") if server.info.get(key))
    facts = f"{server.era} {server.protocol_version}{f', {who}' if who else ''}"
    report.add("ok", "speaks", facts)
    await _offers(report, session, server)
    told = server.status()
    if told.noise:
        report.add(
            "note",
            "stdout",
            f"{told.noise} lines that are no messages were skipped; a log belongs on stderr",
        )
    if tail := server.stderr_tail().strip():
        last = tail.splitlines()[-1]
        report.add("note", "stderr", f"{printable(last, 200)} ({size(len(tail))}; see logs -f)")


async def _offers(report: Report, session: Session, server: Server) -> None:
    from mcpclient.cli import lists

    kinds = (
        ("tools", lists.known_tools),
        ("resources", lists.known_resources),
        ("prompts", lists.known_prompts),
    )
    counts = []
    for what, fetch in kinds:
        try:
            counts.append(f"{len(await fetch(session, server))} {what}")
        except McpClientError as problem:
            report.fail(what, str(failure(problem)))
    report.add("ok", "offers", ", ".join(counts) or "nothing")


def _explain(report: Report, server: Server, problem: McpClientError) -> None:
    """Say why a server did not start, what it said meanwhile, and what to do."""
    last = problem.incidents[-1] if isinstance(problem, RestartsExhausted) else None
    ended = getattr(last, "exit", None) or getattr(problem, "exit", None)
    noise = getattr(last, "noise", "") or getattr(problem, "noise", "")
    text = str(last.problem or last.exit) if last is not None else ""
    text = text or getattr(problem, "problem", "") or str(failure(problem))
    by_hand = f"run it by hand: {masks.command(server.spec.argv, report.hidden)}"
    todo = ""
    if isinstance(problem, AccessRefused):
        todo = "-H 'Authorization: Bearer …', or \"headers\" in its entry"
    elif any(mark == "fail" for mark, _, _ in report.steps):
        todo = "start the server, or correct the URL"
    elif server.spec.url:
        todo = "see whether the URL is that of an MCP server, and whether it wants a header"
    elif isinstance(problem, CallTimedOut) or "in time" in text or "within" in text:
        todo = (
            'it runs and does not answer: if it is only slow, raise "timeouts": {"open": SECONDS} '
            f"in its entry; else {by_hand}"
        )
    elif noise:
        todo = f"it writes what is no message to stdout; its log belongs on stderr. {by_hand}"
    elif ended is not None or isinstance(problem, OpeningFailed):
        todo = by_hand
    else:
        todo = str(getattr(problem, "hint", ""))
    report.fail("starts", printable(text))
    for line in server.stderr_tail().strip().splitlines()[-3:]:
        report.add("", "stderr", printable(line, 300))
    if noise:
        report.add("", "stdout", printable(noise.strip().splitlines()[0], 300))
    if todo:
        report.add("", "do", todo)
