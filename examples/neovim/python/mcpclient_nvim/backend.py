"""What the editor asks, passed on to a manager of handles; and what comes of it, passed back.

Everything here runs on pynvim's thread and loop, and nothing on it waits. The editor asks by
number (``request``, ``cancel``) and is answered by number, through one Lua function; neither side
ever makes a call that blocks the other. News of states, progress and lists are a picture of the
present: only one is under way at a time, and the next one is sent when the editor has taken it.
"""

from __future__ import annotations

import traceback
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import pynvim  # type: ignore[import-untyped]

from mcpclient.cli.problems import Failure
from mcpclient.cli.sources import unknown
from mcpclient.cli.words import converted, texts
from mcpclient.ground.text import printable
from mcpclient.handles import Manager

from . import pages
from .asking import Asking
from .catalog import Catalog
from .following import Following
from .setting import Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.handles import Handle, Server

# How long the servers may take to end once the editor has gone, in seconds; each of them has less.
_CLOSING = 30.0
# How many messages of a server are kept for its log.
_MESSAGES = 200
_RECEIVE = 'require("mcpclient.backend").receive(...)'


def serve() -> None:
    """Serve the editor at the other end of stdin and stdout until it goes away."""
    nvim = pynvim.attach("stdio")
    backend = Backend(nvim)
    try:
        nvim.run_loop(backend.requested, backend.notified)
    except Exception as end:  # pynvim has no class of its own for EOF or a signal
        if not isinstance(end, EOFError | OSError) and "signal" not in str(end):
            traceback.print_exc()
    finally:
        backend.close()


class Backend:
    """One editor's servers."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        """Begin with no servers; ``setup`` names them."""
        self._nvim = nvim
        self._manager = Manager()
        self._setting = Setting()
        self._asking = Asking(self._tell)
        self._handles: dict[int, Handle[Any]] = {}
        self._following: dict[int, Following] = {}
        self._catalogs: dict[str, Catalog] = {}
        self._messages: dict[str, deque[str]] = {}
        # The calls of tools: what a status line shows of them.
        self._running: dict[int, dict[str, Any]] = {}
        self._stale = self._under_way = False
        self._stale_catalogs: set[str] = set()

    # -- from the editor -------------------------------------------------------------------

    def requested(self, name: str, given: list[Any]) -> None:
        """Refuse: the editor would wait for the answer."""
        raise NotImplementedError(f"{name}: use rpcnotify, the editor must not wait")

    def notified(self, name: str, given: list[Any]) -> None:
        """Take what the editor says."""
        match name, given:
            case "setup", [options]:
                self._set_up(options or {})
            case "request", [number, verb, arguments]:
                act = getattr(self, f"_do_{verb}")
                self._edge(number, "", lambda: act(number, *arguments))
            case "cancel", [number]:
                self._cancel(number)
            case "drawn", [number]:
                if number in self._following:
                    self._following[number].drawn()
            case "answer", [number, action, values]:
                self._asking.answer(number, action, values or {})
            case "taken", []:
                self._under_way = False
                self._send_news()
            case _:
                raise ValueError(f"the editor said {name!r}, which means nothing here")

    def close(self) -> None:
        """Stop all servers, and wait for that; the editor has gone."""
        self._manager.set_wakeup(None)
        for following in self._following.values():
            following.close()
        try:
            self._manager.close().result(_CLOSING)
        except TimeoutError:
            pass  # we end, and the manager's watchdog ends them

    def _set_up(self, options: dict[str, Any]) -> None:
        self._setting = setting = Setting(options)
        self._manager = manager = Manager(
            setting.specs,
            roots=setting.roots,
            on_elicit=self._asking.ask,
            client_name="mcpclient.nvim",
        )
        for method in ("tools", "prompts", "resources"):
            manager.on_notification(f"notifications/{method}/list_changed", self._list_changed)
        manager.on_notification("notifications/message", self._message)
        manager.on_state(lambda server, state: self._news())
        manager.on_incident(lambda server, incident: self._news())
        manager.set_wakeup(lambda: self._nvim.async_call(self._tick))
        manager.open()
        for problem in setting.problems:
            self._tell("report", "warn", problem)
        self._news()

    # -- to the editor ---------------------------------------------------------------------

    def _tell(self, kind: str, *facts: Any) -> None:
        self._nvim.request("nvim_exec_lua", _RECEIVE, [kind, *facts], async_=True)

    def _tick(self) -> None:
        # Whatever is left wakes the loop again: what the editor says gets its turn in between.
        self._manager.tick(budget=0.002)

    def _answer(self, number: int, value: Any = None) -> None:
        self._forget(number)
        self._tell("answer", number, value)

    def _fail(self, number: int, server: str, problem: Exception) -> None:
        self._forget(number)
        named = server or getattr(problem, "server", "")
        text, more = pages.sentence(problem, named), pages.details(problem)
        self._tell("failed", number, {"text": text, "lines": more})

    def _forget(self, number: int) -> None:
        self._handles.pop(number, None)
        self._running.pop(number, None)
        self._news()

    def _edge(self, number: int, server: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as problem:  # the outer edge of a request: whoever asked must hear of it
            self._fail(number, server, problem)

    def _then(
        self, number: int, handle: Handle[Any], go: Callable[[Any], None], server: str = ""
    ) -> None:
        """Have a function called with the result, or the editor told that there is none."""

        def ended(handle: Handle[Any]) -> None:
            if self._handles.get(number) is handle:  # else it was cancelled
                self._edge(number, server, lambda: go(handle.result()))

        self._handles[number] = handle
        handle.add_done_callback(ended)

    def _cancel(self, number: int) -> None:
        if following := self._following.pop(number, None):
            following.close()
        handle = self._handles.get(number)
        self._forget(number)
        if handle is not None:
            handle.cancel()

    def _find(self, name: str) -> Server:
        if self._setting.failure is not None:
            raise self._setting.failure
        if name in self._setting.broken:
            raise Failure(self._setting.broken[name])
        if name not in self._manager:
            raise Failure(unknown("server", name, list(self._manager), "here"))
        return self._manager[name]

    # -- news ------------------------------------------------------------------------------

    def _news(self) -> None:
        self._stale = True
        self._send_news()

    def _send_news(self) -> None:
        if self._under_way or not self._stale:
            return
        self._stale, self._under_way = False, True
        catalogs = {name: self._catalogs[name].shown() for name in self._stale_catalogs}
        self._stale_catalogs.clear()
        news = {
            "servers": [pages.row(self._manager[name]) for name in self._manager],
            "running": list(self._running.values()),
            "catalogs": catalogs,
        }
        self._tell("news", news)

    def _progressed(self, number: int, progress: Any, total: Any, message: Any) -> None:
        if number in self._running:
            share = -1
            if total and 0 <= progress <= total:
                share = int(100 * progress / total)
            text = printable(message, 200) if isinstance(message, str) else ""
            self._running[number] |= {"percent": share, "message": text}
            self._news()

    def _message(self, server: Server, params: Any) -> None:
        told = params if isinstance(params, dict) else {}
        kept = self._messages.setdefault(server.name, deque(maxlen=_MESSAGES))
        level = printable(str(told.get("level")), 20)
        kept.append(f"- {level}: {printable(str(told.get('data')), 500)}")

    def _list_changed(self, server: Server, params: Any) -> None:
        if server.name in self._catalogs:
            self._catalogs[server.name].read()

    # -- what can be asked -----------------------------------------------------------------

    def _do_start(self, number: int, name: str) -> None:
        done = f"{printable(name, 100)} is up"
        self._then(number, self._find(name).start(), lambda _: self._answer(number, done), name)

    def _do_stop(self, number: int, name: str) -> None:
        done = f"{printable(name, 100)} is stopped"
        self._then(number, self._find(name).stop(), lambda _: self._answer(number, done), name)

    def _do_restart(self, number: int, name: str) -> None:
        done = f"{printable(name, 100)} is up again"
        self._then(number, self._find(name).restart(), lambda _: self._answer(number, done), name)

    def _do_log(self, number: int, name: str) -> None:
        told = self._messages.get(name, ())
        self._answer(number, pages.of_log(self._find(name), list(told)))

    def _do_tool(self, number: int, name: str, tool: str, words: list[str]) -> None:
        """Call a tool with the words of a command line, read as its schema says."""
        server = self._find(name)

        def listed(tools: list[Any]) -> None:
            known = {one.name: one for one in tools}
            if tool not in known:
                raise Failure(unknown("tool", tool, list(known), f'on "{name}"'))
            usage = f"usage: :McpTool {name} {tool} {_usage(known[tool])}"
            self._call(number, server, tool, converted(words, known[tool].input_schema, usage))

        self._note(number, name, tool)
        self._then(number, server.list_tools(), listed, name)

    def _do_call(self, number: int, name: str, tool: str, arguments: Any) -> None:
        """Call a tool with arguments as they are; Lua's empty table may be an empty list."""
        server = self._find(name)
        self._note(number, name, tool)
        self._call(number, server, tool, arguments or {})

    def _call(self, number: int, server: Server, tool: str, arguments: dict[str, Any]) -> None:
        handle = server.invoke_tool(tool, arguments, on_progress=partial(self._progressed, number))

        def answered(result: Any) -> None:
            text = pages.lines(result.text)
            self._answer(number, {"lines": pages.of_tool(result), "text": text})

        self._then(number, handle, answered, server.name)

    def _note(self, number: int, server: str, tool: str) -> None:
        names = {"server": printable(server, 100), "tool": printable(tool, 100)}
        self._running[number] = {"number": number, **names, "percent": -1, "message": ""}
        self._news()

    def _do_prompt(self, number: int, name: str, prompt: str, words: list[str]) -> None:
        handle = self._find(name).get_prompt(prompt, texts(words))
        self._then(
            number, handle, lambda result: self._answer(number, pages.of_prompt(result)), name
        )

    def _do_follow(self, number: int, name: str, uri: str) -> None:
        """Tell what a resource holds, now and after each change, until it is cancelled."""
        self._following[number] = Following(
            self._find(name), uri, lambda page: self._tell("page", number, page)
        )

    def _do_catalog(self, number: int, name: str) -> None:
        """Find out what there is to complete; the answer comes with the news."""
        server = self._find(name)
        if name not in self._catalogs:
            self._catalogs[name] = Catalog(server, lambda: self._listed(name))
        self._catalogs[name].read()
        self._answer(number)

    def _listed(self, name: str) -> None:
        self._stale_catalogs.add(name)
        self._news()

    def _do_complete(self, number: int, name: str, prompt: str, argument: str, text: str) -> None:
        ref = {"type": "ref/prompt", "name": prompt}
        handle = self._find(name).complete(ref, argument, text, timeout=10)
        self._then(
            number,
            handle,
            lambda found: self._answer(number, list(filter(str.isprintable, found.values))),
        )


def _usage(tool: Any) -> str:
    from mcpclient.cli.schema import arguments

    return " ".join(one.usage for one in arguments(tool.input_schema))
