"""What the tests of the transports share: a sink that keeps what it is told, and a frame."""

from __future__ import annotations

from mcpclient.ground.exits import Exit
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.framing import Oversize
from tests.conftest import eventually


class Recorder:
    """A sink that keeps all it is told, in order."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.rests: list[bytes] = []
        self.oversizes: list[Oversize] = []
        self.stalls: list[float] = []
        self.gones: list[tuple[Exit, str]] = []
        self.order: list[str] = []

    def frame(self, line: bytes) -> None:
        self.frames.append(line)
        self.order.append("frame")

    def rest(self, line: bytes) -> None:
        self.rests.append(line)
        self.order.append("rest")

    def oversize(self, spill: Oversize) -> None:
        self.oversizes.append(spill)
        self.order.append("oversize")

    def stalled(self, waited: float) -> None:
        self.stalls.append(waited)

    def gone(self, exit: Exit, reason: str) -> None:
        self.gones.append((exit, reason))
        self.order.append("gone")

    async def frames_are(self, count: int) -> list[bytes]:
        """Wait for so many frames and return all there are."""
        await eventually(lambda: len(self.frames) >= count)
        return self.frames

    async def gone_with(self) -> tuple[Exit, str]:
        """Wait for the end and return it."""
        await eventually(lambda: self.gones)
        return self.gones[0]


def line(text: str | bytes) -> Outgoing:
    """Return a frame on its way out."""
    data = text.encode() if isinstance(text, str) else text
    return Outgoing(data + b"\n")
