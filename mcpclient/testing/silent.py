"""What a server's end of a transport is told beside frames. It has no use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpclient.ground.errors import McpClientError
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.framing import Oversize


class Silent:
    """What a sink must know beside frames, for servers: nothing of it happens to them."""

    def rest(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""

    def oversize(self, spill: Oversize) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""

    def reply(self, item: Outgoing, body: bytes) -> bool:
        """See :class:`~mcpclient.transports.base.Sink`."""
        return False

    def failed(self, item: Outgoing, problem: McpClientError) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""

    def lapsed(self) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""

    def stalled(self, waited: float) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
