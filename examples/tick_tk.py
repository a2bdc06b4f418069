"""A window that stays awake: buttons call tools, and what servers say appears as it comes.

Run it with ``python examples/tick_tk.py [--demo]``; the demo presses the buttons itself, closes
when it has seen the outcome, and says in one line what that was. Tk draws and ticks in its own
main loop: no thread of ours ever touches it, and no button ever waits.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tkinter
from pathlib import Path
from typing import Any

from mcpclient.handles import Handle, Manager, Server

FRAME = 16  # milliseconds
SERVER = Path(__file__).resolve().parent.parent / "fixtures" / "servers" / "good_handshake.py"
ECHOED = 101  # lines: a hundred notices, and one answer
NEWS = "notifications/resources/updated"


class Window:
    """One server: three buttons, a line of state, a list of what came."""

    def __init__(self, root: tkinter.Tk, manager: Manager) -> None:
        self.root = root
        self.manager = manager
        self.server = manager["one"]
        self.lines: list[str] = []
        self.costs: list[float] = []  # seconds of this thread's own work in each tick
        self.call: Handle[Any] | None = None
        self.state = tkinter.StringVar(value=self.server.state)
        tkinter.Label(root, textvariable=self.state).pack(fill="x")
        for label, press in (("echo", self.echo), ("slow", self.slow), ("cancel", self.cancel)):
            tkinter.Button(root, text=label, command=press).pack(side="left")
        self.box = tkinter.Listbox(root, width=60)
        self.box.pack(fill="both", expand=True)
        manager.on_state(lambda server, state: self.state.set(f"{server.name}: {state}"))
        manager.on_notification(NEWS, self.news)
        self.tick()

    def tick(self) -> None:
        """Take what has come, sixty times a second."""
        begun = time.thread_time()
        self.manager.tick()
        self.costs.append(time.thread_time() - begun)
        self.root.after(FRAME, self.tick)

    def say(self, line: str) -> None:
        """Show a line."""
        self.lines.append(line)
        self.box.insert("end", line)

    def echo(self) -> None:
        """Call a tool that answers at once, and have the server send news besides."""
        self.server.invoke_tool("notify", {"n": 100, "uri": "test://a"})
        handle = self.server.invoke_tool("echo", {"text": "hello from a button"})
        handle.add_done_callback(self.answered)

    def slow(self) -> None:
        """Call a tool that takes its time; the window does not."""
        self.call = self.server.invoke_tool("slow", {"seconds": 30})
        self.call.add_done_callback(self.answered)

    def cancel(self) -> None:
        """Give the slow one up."""
        if self.call is not None:
            self.call.cancel()

    def answered(self, handle: Handle[Any]) -> None:
        """Show what came of a call."""
        problem = handle.exception()
        self.say(handle.result().text if problem is None else str(problem))

    def news(self, server: Server, params: Any) -> None:
        """Show a notice."""
        self.say(f"{server} says that {params['uri']} changed")


def press_on(window: Window) -> None:
    """Cancel the slow call once all else has come, and close once that is shown."""
    if len(window.lines) == ECHOED:
        window.cancel()
    if len(window.lines) == ECHOED + 1:
        window.root.quit()
    window.root.after(100, press_on, window)


def main() -> None:
    """Show the window until it is closed, or until the demo has seen all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", action="store_true")
    demo = parser.parse_args().demo
    root = tkinter.Tk()
    root.title("mcpclient")
    with Manager({"one": [sys.executable, str(SERVER)]}) as manager:
        window = Window(root, manager)
        if demo:
            window.echo()
            window.slow()
            press_on(window)
        root.mainloop()
        state = window.server.state
    news = sum("changed" in line for line in window.lines)
    others = [line for line in window.lines if "changed" not in line]
    worst = round(max(window.costs) * 1e3, 3)
    print(
        json.dumps({"state": state, "news": news, "lines": others, "tick_ms_worst_own_work": worst})
    )


if __name__ == "__main__":
    main()
