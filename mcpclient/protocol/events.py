"""What a session can tell about a frame it was fed. Values only."""

from __future__ import annotations

from msgspec import Raw, Struct


class Answer(Struct, frozen=True, gc=False):
    """A request of ours was answered with a result."""

    id: int
    result: Raw


class Refusal(Struct, frozen=True, gc=False):
    """A request of ours was answered with an error."""

    id: int
    code: int
    message: str
    data: Raw


class Broken(Struct, frozen=True, gc=False):
    """A request of ours was answered with something that cannot be read."""

    id: int
    problem: str


class Notice(Struct, frozen=True, gc=False):
    """The server sent a notification."""

    method: str
    params: Raw


class Ask(Struct, frozen=True, gc=False):
    """The server sent a request. Its id is given back as it came."""

    id: int | str | float
    method: str
    params: Raw


class Noise(Struct, frozen=True, gc=False):
    """Something that is no message, or one that concerns nobody.

    Attributes:
        line: The bytes.
        hint: What it looks like, or an empty string.
    """

    line: bytes
    hint: str


Event = Answer | Refusal | Broken | Notice | Ask | Noise
