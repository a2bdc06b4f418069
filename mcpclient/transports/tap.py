"""A transport that lets another one be listened to. What is done with it, a subclass knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpclient.ground.errors import McpClientError
    from mcpclient.ground.exits import Exit
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.framing import Oversize
    from mcpclient.transports.base import Sink, Transport


class Tap:
    """Carries what another transport carries; a subclass is shown it."""

    def __init__(self, transport: Transport) -> None:
        self._inner = transport
        self._sink: Sink | None = None
        self.withdraw = transport.withdraw
        self.stderr_tail = transport.stderr_tail

    # -- for subclasses; they never raise --------------------------------------------------

    def passed(self, sign: str, frame: bytes) -> None:
        """A frame passes: ``>`` out, ``<`` in. Of one over the limit it is the beginning."""

    def missed(self, item: Outgoing, problem: McpClientError) -> None:
        """A frame was not answered, and will not be."""

    def ended(self, exit: Exit, reason: str) -> None:
        """The peer is gone."""

    # -- the transport ---------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._inner.pid

    @property
    def waiting(self) -> int:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._inner.waiting

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink
        self._inner.start(self)

    def send(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self.passed(">", item.frame)
        self._inner.send(item)

    def send_soon(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self.passed(">", item.frame)
        self._inner.send_soon(item)

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._inner.destroy(reason)

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return await self._inner.close()

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._inner.kill()

    # -- the sink --------------------------------------------------------------------------

    def frame(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.passed("<", line)
        self._to().frame(line)

    def rest(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.passed("<", line)
        self._to().rest(line)

    def oversize(self, spill: Oversize) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.passed("<", spill.head)
        self._to().oversize(spill)

    def reply(self, item: Outgoing, body: bytes) -> bool:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.passed("<", body)
        return self._to().reply(item, body)

    def failed(self, item: Outgoing, problem: McpClientError) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        if not item.settled:
            self.missed(item, problem)
        self._to().failed(item, problem)

    def lapsed(self) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._to().lapsed()

    def stalled(self, waited: float) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._to().stalled(waited)

    def gone(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.ended(exit, reason)
        self._to().gone(exit, reason)

    def _to(self) -> Sink:
        assert self._sink is not None
        return self._sink
