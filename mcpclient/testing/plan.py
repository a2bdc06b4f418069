"""What a scripted server will do, as values that can be written down as JSON.

Knows what can be said in a script; performs none of it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

# No method is called so.
START = "(start)"


class Wait(Struct, frozen=True, tag="wait"):
    """Do nothing for so many seconds."""

    seconds: float


class Answer(Struct, frozen=True, tag="answer"):
    """Answer the request.

    Attributes:
        result: The result; None: what the server would have answered unscripted.
        cut: Only this many bytes of the frame are written; None: all.
        drip: So many bytes are written at a time; None: all at once.
    """

    result: Any = None
    cut: int | None = None
    drip: int | None = None


class Fail(Struct, frozen=True, tag="fail"):
    """Refuse the request."""

    code: int
    message: str
    data: Any = None


class Notify(Struct, frozen=True, tag="notify"):
    """Send a notification, ``count`` times."""

    method: str
    params: dict[str, Any] = {}
    count: int = 1


class Progress(Struct, frozen=True, tag="progress"):
    """Tell of the request's progress, if its caller wants to know."""

    progress: int | float
    total: int | float | None = None
    message: str | None = None


class Ask(Struct, frozen=True, tag="ask"):
    """Ask the client something, and go on when it has answered.

    Attributes:
        method: What is asked.
        params: With which params.
        expect: What the answer must contain; None: anything.
    """

    method: str
    params: dict[str, Any] = {}
    expect: Any = None


class Raw(Struct, frozen=True, tag="raw"):
    """Write any bytes to stdout."""

    data: bytes


class Complain(Struct, frozen=True, tag="complain"):
    """Write to stderr."""

    text: str


class Die(Struct, frozen=True, tag="die"):
    """End the process, by an exit code or a signal."""

    code: int = 0
    signal: int | None = None


class Deafen(Struct, frozen=True, tag="deafen"):
    """Read nothing from now on."""


class Mute(Struct, frozen=True, tag="mute"):
    """Close stdout."""


class Silence(Struct, frozen=True, tag="silence"):
    """Never answer this one, on purpose."""


Action = (
    Wait | Answer | Fail | Notify | Progress | Ask | Raw | Complain | Die | Deafen | Mute | Silence
)


class Scripted(Struct):
    """One step of a script: what it waits for, and what it then does.

    Attributes:
        number: Its place in the script.
        where: The file and line of whoever scripted it.
        method: The method it waits for, or :data:`START`.
        params: What the params must contain.
        life: The life it belongs to; None: to any.
        times: How often it happens; None: as often as asked.
        actions: What is done, in this order.
    """

    number: int
    where: str
    method: str
    params: dict[str, Any] = {}
    life: int | None = None
    times: int | None = 1
    actions: list[Action] = []

    def __str__(self) -> str:
        import json

        what = self.method if not self.params else f"{self.method} {json.dumps(self.params)}"
        return f"step {self.number} ({what}, scripted in {self.where})"


class Plan(Struct):
    """A whole script.

    Attributes:
        name: What the server calls itself.
        era: ``handshake``, ``stateless`` or ``both``.
        instructions: Its hint for models.
        capabilities: What it declares; None: what its script needs.
        tools: Its tools, as in the answer to ``tools/list``.
        resources: Its resources.
        templates: Its resource templates.
        prompts: Its prompts.
        delay: Seconds before each answer.
        ignore_eof: Whether the end of its stdin does not end it.
        ignore_term: Whether SIGTERM does not end it.
        steps: What was scripted.
    """

    name: str = "script"
    era: str = "handshake"
    instructions: str | None = None
    capabilities: dict[str, Any] | None = None
    tools: list[dict[str, Any]] = []
    resources: list[dict[str, Any]] = []
    templates: list[dict[str, Any]] = []
    prompts: list[dict[str, Any]] = []
    delay: float = 0.0
    ignore_eof: bool = False
    ignore_term: bool = False
    steps: list[Scripted] = []


def contains(whole: Any, part: Any) -> bool:
    """Return whether a value holds another: mappings by their members, all else as equal."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, bool) or isinstance(whole, bool):
        return part is whole
    return bool(whole == part)
