"""Writes down what passes between a client and a server.

In this process around any server of a manager, or as a relay around a command for any client:
``python -m mcpclient.testing.recorder FILE -- COMMAND ARGUMENT…``.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import msgspec

from mcpclient.ground.errors import ServerUnavailable
from mcpclient.manager.spec import ServerSpec
from mcpclient.testing.recording import RecordingError, Track
from mcpclient.testing.redaction import Redaction
from mcpclient.transports.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from mcpclient.ground.exits import Exit
    from mcpclient.loops.base import Loop
    from mcpclient.testing.recording import Entry
    from mcpclient.transports.base import Transport

_log = logging.getLogger("mcpclient")
# The log of the wire is written once.
_SHARED = [name for name in ServerSpec.__struct_fields__ if name not in ("wire_log", "type")]


class Recorder:
    """Records the sessions of one server, without secrets.

    Taken out are the values of members that are named like a secret, of the server's own variables
    and headers that are, and what follows ``Bearer``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        patterns: Iterable[str] = (),
        home: bool = False,
        redact: Callable[[Any], Any] | None = None,
    ) -> None:
        """Prepare to record.

        Args:
            path: The file. It is begun anew with the first life. None: only in memory.
            patterns: Regular expressions; what matches is taken out too.
            home: Whether the home directory is written as ``${HOME}``, to be replayed by others.
            redact: Called with each message without its secrets; returns what is to be written.
        """
        self.path = path
        self._redaction = Redaction(patterns, home=home, custom=redact)
        self._tracks: list[Track] = []

    def spec(self, server: Any, **options: Any) -> ServerSpec:
        """Return the spec of the same server, recorded.

        Args:
            server: Whatever a manager takes, or a source as for ``in_memory``.
            options: Options of :class:`ServerSpec` that are to be others.
        """
        from mcpclient.testing.connecting import spec_for

        inner = spec_for(server, **options)
        same = {name: getattr(inner, name) for name in _SHARED}
        kind = "sse" if inner.type == "sse" else None  # the others are told anew
        return Recorded(**same, type=kind, inner=inner, recorder=self)

    def begin(self, server: str, secrets: dict[str, str]) -> Track:
        """Begin a life.

        Raises:
            ServerUnavailable: The file cannot be written, or is something else than a recording.
        """
        redaction = self._redaction.knowing(secrets)
        try:
            track = Track(self.path, redaction, server, anew=not self._tracks)
        except (OSError, RecordingError) as problem:
            refused = ServerUnavailable(f"it cannot be recorded: {problem}")
            refused.final = True  # trying again would change nothing
            raise refused from None
        track.life = len(self._tracks) + 1
        self._tracks.append(track)
        return track

    @property
    def entries(self) -> list[Entry]:
        """All that passed, in all lives, without secrets."""
        return [entry for track in self._tracks for entry in track.entries]

    def sent(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return the messages to the server; None: of any method, answers included."""
        return self._messages(">", method)

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """Return the messages from the server; None: of any method, answers included."""
        return self._messages("<", method)

    def _messages(self, sign: str, method: str | None) -> list[dict[str, Any]]:
        return [
            entry.body
            for entry in self.entries
            if entry.dir == sign and entry.body and method in (None, entry.method)
        ]


class Recorded(ServerSpec, frozen=True):
    """The spec of a server that is recorded. Made by :meth:`Recorder.spec`."""

    inner: Any = None
    recorder: Any = None

    def dial(
        self, loop: Loop, connect: Callable[[ServerSpec], Awaitable[Transport]]
    ) -> Awaitable[Transport] | None:
        """See :class:`~mcpclient.manager.spec.ServerSpec`."""
        return self._transport(connect)

    async def _transport(self, connect: Callable[[ServerSpec], Awaitable[Transport]]) -> Transport:
        # Whatever was replaced in this spec since, the server is run by it.
        same = {name: getattr(self, name) for name in _SHARED}
        inner: ServerSpec = msgspec.structs.replace(self.inner, **same)
        name = os.path.basename(self.command) or self.address
        track = self.recorder.begin(name, {**self.env, **self.headers})
        return _Listening(await connect(inner), track)


class _Listening(Tap):
    def __init__(self, transport: Transport, track: Track) -> None:
        super().__init__(transport)
        self._track = track
        self._asked = False
        self._broken = False

    def passed(self, sign: str, frame: bytes) -> None:
        """See :class:`~mcpclient.transports.tap.Tap`."""
        self._write(lambda: self._track.frame(sign, frame))

    def ended(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.tap.Tap`."""
        self._write(lambda: self._track.end(exit, asked=self._asked))

    def _write(self, write: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            write()
        except Exception:  # a user's own function, or a full disk: it costs no call
            self._broken = True
            _log.exception("! the recording ends here")

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._asked = True
        super().destroy(reason)

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._asked = True
        return await super().close()

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._asked = True
        super().kill()


if __name__ == "__main__":
    import sys

    from mcpclient.testing.relay import main

    sys.exit(main(sys.argv[1:]))
