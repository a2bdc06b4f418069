"""A server that does what a test says: when asked this, answer that, then die.

The script is built in code and served in memory (:func:`~mcpclient.testing.in_memory`) or by a
real child process (:meth:`Script.spec`). It knows what to do and what was done; how, the plan's
performers know.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from mcpclient.ground.errors import ConfigError
from mcpclient.manager.spec import ServerSpec
from mcpclient.testing import plan
from mcpclient.testing.journal import FileJournal, Journals, PlayFault
from mcpclient.testing.places import here

if TYPE_CHECKING:
    from mcpclient.testing.acts import Part

ERAS = ("handshake", "stateless", "both")


class Step:
    """One step of a script. What is chained to it happens in that order, once it is asked for."""

    def __init__(self, scripted: plan.Scripted) -> None:
        self._scripted = scripted

    def _then(self, action: plan.Action) -> Self:
        self._scripted.actions.append(action)
        return self

    # -- how often -------------------------------------------------------------------------

    def times(self, count: int) -> Self:
        """Let it happen so many times instead of once."""
        if count < 1:
            raise ValueError(f"times must be at least 1, not {count!r}")
        self._scripted.times = count
        return self

    def always(self) -> Self:
        """Let it happen as often as it is asked for, which may be never."""
        self._scripted.times = None
        return self

    # -- answers ---------------------------------------------------------------------------

    def answer(
        self,
        result: Any = None,
        *,
        cut: int | None = None,
        drip: int | None = None,
    ) -> Self:
        """Answer with a result.

        Args:
            result: The result, mostly a mapping; or a function of the params that returns it (in
                memory only); None: what the server would have answered without a script.
            cut: Write only so many bytes of the frame. Mostly ``die()`` follows.
            drip: Write so many bytes at a time.
        """
        return self._then(plan.Answer(result, cut, drip))

    def text(self, text: str, *, is_error: bool = False) -> Self:
        """Answer a tool call with one block of text; with ``is_error`` as a failure of the tool."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        return self.answer({**result, "isError": True} if is_error else result)

    def contents(self, text: str, mime: str = "text/plain") -> Self:
        """Answer a reading of the resource that this step names with its text."""
        uri = self._scripted.params.get("uri", "")
        return self.answer({"contents": [{"uri": uri, "mimeType": mime, "text": text}]})

    def error(self, code: int, message: str, data: Any = None) -> Self:
        """Refuse the request."""
        return self._then(plan.Fail(code, message, data))

    def silence(self) -> Self:
        """Never answer, on purpose."""
        return self._then(plan.Silence())

    # -- beside the answer -----------------------------------------------------------------

    def wait(self, seconds: float) -> Self:
        """Let so many seconds pass before what follows; other requests are served meanwhile."""
        return self._then(plan.Wait(seconds))

    def notify(self, method: str, **params: Any) -> Self:
        """Send a notification.

        In the stateless era a change of a list or a resource is told to those who listen for it.
        """
        return self._then(plan.Notify(method, params))

    def log(self, level: str, data: Any) -> Self:
        """Send a log message."""
        return self.notify("notifications/message", level=level, data=data)

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Self:
        """Tell of the request's progress, if its caller wants to know."""
        return self._then(plan.Progress(progress, total, message))

    def ask(self, method: str, params: dict[str, Any] | None = None, *, expect: Any = None) -> Self:
        """Ask the client, and go on when it has answered: as a request, or a round, by era.

        Args:
            method: Such as ``roots/list`` or ``elicitation/create``.
            params: What is asked.
            expect: What the answer must contain; else :meth:`Script.check` fails. What was
                answered is in :attr:`Script.answers`.
        """
        return self._then(plan.Ask(method, params or {}, expect))

    # -- misbehaviour ----------------------------------------------------------------------

    def flood(self, method: str, count: int, **params: Any) -> Self:
        """Send a notification many times at once."""
        return self._then(plan.Notify(method, params, count))

    def garbage(self, data: bytes) -> Self:
        """Write any bytes to stdout, as they are: nothing is added, no line end either."""
        return self._then(plan.Raw(data))

    def stderr(self, text: str) -> Self:
        """Write to stderr."""
        return self._then(plan.Complain(text))

    def die(self, code: int = 0, *, signal: int | None = None) -> Self:
        """End the process, by an exit code or a signal, once what was written is out."""
        return self._then(plan.Die(code, signal))

    def deafen(self) -> Self:
        """Read nothing from now on."""
        return self._then(plan.Deafen())

    def mute(self) -> Self:
        """Close stdout, and live on. In memory this ends the server."""
        return self._then(plan.Mute())

    def __repr__(self) -> str:
        return f"<{self._scripted}>"


class Steps:
    """Where steps are added: to a whole script, or to one life of it."""

    def _add(self, method: str, params: dict[str, Any]) -> Step:
        raise NotImplementedError

    def on(self, method: str, /, **params: Any) -> Step:
        """Script what happens when a method is asked, or a notification comes.

        Of several steps that fit, the first that has not happened yet is taken. A step happens
        once, unless :meth:`Step.times` or :meth:`Step.always` says otherwise.

        Args:
            method: The method.
            params: What the params must contain; mappings are compared by these members.
        """
        return self._add(method, params)

    def start(self) -> Step:
        """Script what the process does as soon as it is there, beside answering.

        It happens in the first life, or in that named by :meth:`Script.life`; with
        :meth:`Step.always` in each.
        """
        return self._add(plan.START, {})


class _Life(Steps):
    def __init__(self, script: Script, number: int) -> None:
        self._script = script
        self._number = number

    def _add(self, method: str, params: dict[str, Any]) -> Step:
        return self._script.add(method, params, self._number)


class Script(Steps):
    """A scripted server.

    It opens, answers pings, and lists the tools, resources and prompts that its steps name; the
    rest is up to the script. What was not scripted is refused and makes :meth:`check` fail.
    """

    def __init__(
        self,
        *,
        name: str = "script",
        era: str = "handshake",
        capabilities: dict[str, Any] | None = None,
        instructions: str | None = None,
        delay: float = 0.0,
        ignore_eof: bool = False,
        ignore_term: bool = False,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Begin a script.

        Args:
            name: What the server calls itself.
            era: ``handshake``, ``stateless`` or ``both``.
            capabilities: What it declares; None: what the script needs.
            instructions: Its hint for models.
            delay: Seconds before each of its answers, openings too.
            ignore_eof: Whether a child process goes on when its stdin ends. It still ends with
                the process that started it.
            ignore_term: Whether a child process ignores SIGTERM.
            folder: Where what a child process needs is kept; None: a temporary folder, removed
                with the script.

        Raises:
            ValueError: The era is none of these.
        """
        if era not in ERAS:
            raise ValueError(f"era must be one of {', '.join(ERAS)}, not {era!r}")
        self.plan = plan.Plan(
            name=name,
            era=era,
            capabilities=capabilities,
            instructions=instructions,
            tools=[],
            resources=[],
            templates=[],
            prompts=[],
            steps=[],
            delay=delay,
            ignore_eof=ignore_eof,
            ignore_term=ignore_term,
        )
        self._journal = Journals()
        self._folder = Folder(folder)

    # -- what it will do -------------------------------------------------------------------

    def life(self, number: int) -> Steps:
        """Return where to add steps that belong to one life of the server, counted from 1."""
        if number < 1:
            raise ValueError(f"lives are counted from 1, not {number!r}")
        return _Life(self, number)

    def tool(self, name: str, /, **fields: Any) -> None:
        """Have a tool listed with these fields, such as ``inputSchema``."""
        self.plan.tools.append({"name": name, "inputSchema": {"type": "object"}, **fields})

    def resource(self, uri: str, /, **fields: Any) -> None:
        """Have a resource listed with these fields."""
        self.plan.resources.append({"uri": uri, "name": uri, **fields})

    def template(self, uri: str, /, **fields: Any) -> None:
        """Have a resource template listed with these fields."""
        self.plan.templates.append({"uriTemplate": uri, "name": uri, **fields})

    def prompt(self, name: str, /, **fields: Any) -> None:
        """Have a prompt listed with these fields."""
        self.plan.prompts.append({"name": name, **fields})

    def _add(self, method: str, params: dict[str, Any]) -> Step:
        return self.add(method, params, None)

    def add(self, method: str, params: dict[str, Any], life: int | None) -> Step:
        """Add a step; :meth:`on`, :meth:`start` and :meth:`life` do it more readably."""
        number = len(self.plan.steps) + 1
        step = plan.Scripted(number, here(), method, params, life, actions=[])
        self.plan.steps.append(step)
        return Step(step)

    # -- serving ---------------------------------------------------------------------------

    def part(self) -> Part:
        """Return the part of the next life, to be performed in this process."""
        from mcpclient.testing.play import Play  # only who performs needs it

        return Play(self.plan, self._journal.new_life(), self._journal)

    def spec(self, **options: Any) -> ServerSpec:
        """Return the spec of a child process that plays the script as it is now.

        Its pipes, signals and exit codes are real. What it does is written to a folder, where
        :meth:`check` finds it.

        Args:
            options: As for :class:`ServerSpec`.

        Raises:
            ConfigError: An answer is a function, which only works in memory.
        """
        try:
            data = msgspec.json.encode({"script": self.plan})
        except TypeError:
            functions = [
                str(step)
                for step in self.plan.steps
                for action in step.actions
                if isinstance(action, plan.Answer) and callable(action.result)
            ]
            what = functions[0] if functions else "the script"
            raise ConfigError(
                f"{what} answers by what is no JSON, which a child process cannot; "
                "serve it by in_memory(script)"
            ) from None
        return self._folder.spec(data, self._journal, options)

    # -- what it did -----------------------------------------------------------------------

    @property
    def lives(self) -> int:
        """How many lives have begun."""
        return len(self._journal.entries("life"))

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return the messages that came from the client, in all lives; None: of any method."""
        got = [entry["message"] for entry in self._journal.entries("got")]
        return [one for one in got if method is None or one.get("method") == method]

    @property
    def answers(self) -> list[Any]:
        """What the client answered to what the script asked, oldest first."""
        return [entry["answer"] for entry in self._journal.entries("answer")]

    def problems(self) -> list[str]:
        """Return what went otherwise than scripted, a sentence each."""
        found = [f"life {one['life']}: {one['text']}" for one in self._journal.entries("fault")]
        for entry in self._journal.entries("unexpected"):
            asked = f"{entry['method']} {json.dumps(_plain(entry['params']))}"
            found.append(f"life {entry['life']}: nothing was scripted for {asked}")
        answered = [(one["life"], one["step"]) for one in self._journal.entries("answer")]
        for entry in self._journal.entries("asked"):
            if (asked_by := (entry["life"], entry["step"])) in answered:
                answered.remove(asked_by)
                continue
            step = self.plan.steps[entry["step"] - 1]
            found.append(f"life {entry['life']}: {step}: {entry['method']} was never answered")
        happened = [entry["step"] for entry in self._journal.entries("step")]
        for step in self.plan.steps:
            count = happened.count(step.number)
            if step.times is not None and count < step.times:
                often = f"happened {count} of {step.times} times" if count else "never happened"
                where = "" if step.life is None else f" in life {step.life}"
                found.append(f"{step} {often}{where}")
        return found

    def check(self) -> None:
        """Fail unless all went as scripted: nothing else was asked, and every step happened.

        Raises:
            PlayFault: Something did not; the text names each, with the line that scripted it. It
                is an AssertionError.
        """
        if problems := self.problems():
            raise PlayFault(f"the script {self.plan.name!r}:\n  " + "\n  ".join(problems))


class PlayedSpec(ServerSpec, frozen=True):
    """The spec of a played process. As long as it is kept, its folder is."""

    folder: Any = None


class Folder:
    """Where a played child process finds what it plays, and leaves what it did."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._given = path
        self._made: str | None = None

    def spec(self, data: bytes, journals: Journals, options: dict[str, Any]) -> ServerSpec:
        """Return the spec of a process that plays what is written here."""
        if self._given is None and self._made is None:
            self._made = tempfile.mkdtemp(prefix="mcpclient-")
            weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        path = Path(self._given or self._made or "")
        path.mkdir(parents=True, exist_ok=True)
        if journals.file is None:
            with contextlib.suppress(FileNotFoundError):
                (path / "journal.jsonl").unlink()
            for old in path.glob("life-*"):
                old.unlink()
            journals.file = FileJournal(path)
        (path / "played.json").write_bytes(data)
        argv = ["-m", "mcpclient.testing.player", str(path)]
        return PlayedSpec(sys.executable, argv, folder=self, **options)


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "_meta"}
