"""One resource that a buffer shows and that is read again whenever the server says it changed.

The next change is asked for only when the editor has drawn the last one: a server that announces
faster than that is read no more often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient import CallCancelled, McpClientError

from . import pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient import ResourceResult
    from mcpclient.handles import Handle, Server, Subscription

# For how many seconds a server may take to agree to a subscription before it is read without.
_AGREEING = 5.0


class Following:
    """From the buffer's first line to its end."""

    def __init__(self, server: Server, uri: str, tell: Callable[[dict[str, Any]], None]) -> None:
        """Begin to start the server, if it must; then subscribe, then read.

        Args:
            server: The server.
            uri: The resource.
            tell: Called with ``lines``, ``filetype`` and ``follows``, or with ``problem``.
        """
        self._server = server
        self._uri = uri
        self._tell = tell
        self._over = self._follows = False
        self._subscription: Subscription | None = None
        self._waiting: Handle[Any] | None = None
        self._then(server.wait_ready(), self._up)

    def drawn(self) -> None:
        """The editor shows what it was told last: wait for the next change."""
        if self._follows and not self._over and self._subscription is not None:
            self._then(self._subscription.next(), self._changed)

    def close(self) -> None:
        """Follow it no more, and drop what is under way."""
        self._over = True
        if self._subscription is not None:
            self._subscription.close()
        if self._waiting is not None:
            self._waiting.cancel()

    def _then(self, handle: Handle[Any], go: Callable[[Handle[Any]], None]) -> None:
        def ended(handle: Handle[Any]) -> None:
            if not self._over:
                self._waiting = None
                go(handle)

        self._waiting = handle
        handle.add_done_callback(ended)

    def _up(self, handle: Handle[None]) -> None:
        if problem := handle.exception():
            self._failed(problem)
            return
        # Subscribed first, then read: no change falls in between.
        self._subscription = self._server.subscribe(self._uri, timeout=_AGREEING)
        self._then(self._subscription.open(), self._agreed)

    def _agreed(self, handle: Handle[Any]) -> None:
        # A server that offers no subscription, or does not answer, is read all the same.
        self._follows = handle.exception() is None
        # What was read while nobody followed may be old.
        self._read("refresh")

    def _changed(self, handle: Handle[Any]) -> None:
        problem = handle.exception()
        if problem is None and handle.result() is not None:
            self._read("use")  # the library has dropped what it kept
            return
        self._follows = False  # the server was removed, or does not agree any more
        if problem is not None:
            self._failed(problem)

    def _read(self, cache: str) -> None:
        self._then(self._server.read_resource(self._uri, cache=cache), self._was_read)

    def _was_read(self, handle: Handle[ResourceResult]) -> None:
        if problem := handle.exception():
            self._failed(problem)
        else:
            self._tell({**pages.of_resource(handle.result()), "follows": self._follows})

    def _failed(self, problem: BaseException) -> None:
        if isinstance(problem, McpClientError) and not isinstance(problem, CallCancelled):
            self._tell({"problem": pages.sentence(problem, self._server.name)})
        else:
            self._tell({"problem": pages.sentence(problem)})
        # A server that died comes back, and then there is one more change.
