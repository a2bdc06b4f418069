"""What a transport owes and what it is owed. Nothing here reads a frame's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcpclient.ground.errors import McpClientError
    from mcpclient.ground.exits import Exit
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.framing import Oversize


class Sink(Protocol):
    """Who takes what a transport brings. Its methods never raise and never wait."""

    def frame(self, line: bytes) -> None:
        """One frame arrived."""

    def rest(self, line: bytes) -> None:
        """This stood after the last line end when the peer was gone: a frame, or half of one."""

    def oversize(self, spill: Oversize) -> None:
        """A frame over the limit was skipped."""

    def reply(self, item: Outgoing, body: bytes) -> bool:
        """This is all that came in answer to a request; return whether it answers it.

        What is no message at all is not taken note of: the transport knows better what it is.
        """

    def failed(self, item: Outgoing, problem: McpClientError) -> None:
        """No answer will come to this request, and why. One that was settled is left alone."""

    def lapsed(self) -> None:
        """For a while nothing could be heard: what the peer told of its own accord is lost."""

    def stalled(self, waited: float) -> None:
        """The peer has taken no byte for so many seconds, with frames waiting."""

    def gone(self, exit: Exit, reason: str) -> None:
        """It is over; nothing follows. ``reason`` is empty if the exit says it all."""


class Transport(Protocol):
    """Carries frames to one peer and back until it is closed or the peer is gone."""

    @property
    def pid(self) -> int | None:
        """The peer's process, if it has one."""

    @property
    def waiting(self) -> int:
        """How many bytes wait to be written."""

    def start(self, sink: Sink) -> None:
        """Begin to read. Nothing is delivered before."""

    def send(self, item: Outgoing) -> None:
        """Write a frame at once, or after those that wait."""

    def send_soon(self, item: Outgoing) -> None:
        """Write a frame together with what else is sent in this turn of the loop."""

    def withdraw(self, item: Outgoing) -> bool:
        """Take back a frame of which no byte was written; False if it is too late."""

    def stderr_tail(self) -> str:
        """The last of what the peer wrote to stderr."""

    def destroy(self, reason: str) -> None:
        """End a peer that is no good any more, at once; the sink is told when it is gone."""

    async def close(self) -> Exit:
        """End it, politely first, within a bounded time. Cancelling does not shorten it."""

    def kill(self) -> None:
        """End it now, without waiting: the loop itself is ending."""
