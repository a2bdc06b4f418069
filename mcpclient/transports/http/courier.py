"""Requests to one endpoint, with all that makes the server let them in. Knows no message.

Credentials go to the endpoint's own origin and nowhere else: a redirect is followed within it only,
with method, body and headers kept.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.protocol.httprules import Challenge, challenges, checked, redirects
from mcpclient.transports.http.pool import Cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.ground.options import Timeouts
    from mcpclient.protocol.httprules import Header
    from mcpclient.transports.http.pool import Answer, Origin
    from mcpclient.transports.urls import HttpUrl

_log = logging.getLogger("mcpclient")
# Redirects of one request, at most.
_HOPS = 5
# What of a body is read that nobody asked for, so that its connection can be used again.
_DRAINED = 65536
# And for how long it is waited for.
_DRAINING = 5.0
# A value shorter than this is no secret, and stands in many texts by chance.
_GUESSED = 6


class NoCredentials(Exception):
    """The function that gives them raised, or took too long."""


class Courier:
    """Sends requests to one endpoint.

    Attributes:
        url: The endpoint. A permanent redirect changes it.
    """

    def __init__(
        self,
        origin: Origin,
        url: HttpUrl,
        *,
        server: str,
        headers: Mapping[str, str],
        auth: Callable[[str, Challenge | None], Any] | None,
        timeouts: Timeouts,
    ) -> None:
        """Prepare to send.

        Args:
            origin: The connections to use; released by :meth:`release`.
            url: The endpoint.
            server: The server's name, for ``auth`` and the log.
            headers: What the user has sent with each request.
            auth: See :class:`~mcpclient.manager.spec.ServerSpec`.
            timeouts: ``write`` and ``ask`` are used.
        """
        self._origin: Origin | None = origin
        self.url = url
        self._server = server
        self._fixed = [checked(name, value) for name, value in headers.items()]
        if url.login and not any(name == b"authorization" for name, _ in self._fixed):
            self._fixed.append((b"authorization", url.login.encode()))
        self._auth = auth
        self._given: list[Header] = []
        self._timeouts = timeouts

    async def send(
        self,
        method: str,
        headers: list[Header],
        body: bytes | None = None,
        to: HttpUrl | None = None,
    ) -> Answer:
        """Send a request and return its answer, whatever its status; the caller closes it.

        Args:
            method: The HTTP method.
            headers: Its own headers.
            body: Its body, or None.
            to: Another endpoint of the same origin, or None for the usual one.

        Raises:
            Unreached: No connection came about.
            Cut: One did, and broke.
            NoCredentials: ``auth`` failed.
        """
        if self._auth is None:
            return await self._followed(method, headers + self._fixed, body, to)
        given = await self._asked(None)
        answer = await self._followed(method, self._with(headers, given), body, to)
        if answer.status not in (401, 403):
            return answer
        told = challenges(answer.headers(b"www-authenticate"))
        try:
            fresh = await self._asked(told[0] if told else Challenge(""))
            if fresh == given or not fresh:
                return answer
        except BaseException:  # a cancellation too: the answer holds a connection
            await answer.close()
            raise
        await drained(answer)
        return await self._followed(method, self._with(headers, fresh), body, to)

    def masked(self, body: bytes, *more: str | None) -> bytes:
        """Return a body as it may be shown: some servers repeat what they were sent.

        Args:
            body: The body.
            more: Other secrets that were sent.
        """
        told = [value for _, value in self._fixed + self._given]
        told += [one.encode() for one in more if one]
        # Longer ones first: they begin with the scheme of the credentials, others may not.
        parts = {part for one in told for part in (one, one.rpartition(b" ")[2])}
        for secret in sorted(parts, key=len, reverse=True):
            if len(secret) >= _GUESSED:
                body = body.replace(secret, b"***")
        return body

    def release(self) -> None:
        """Let the connections go. Twice is no fault."""
        origin, self._origin = self._origin, None
        if origin is not None:
            origin.release()

    async def _followed(
        self, method: str, headers: list[Header], body: bytes | None, to: HttpUrl | None
    ) -> Answer:
        url, hops, lasting = to or self.url, 0, to is None
        while True:
            if self._origin is None:
                raise Cut("the server is closed")
            answer = await self._origin.send(method, url, headers, body, self._timeouts.write)
            there = self._there(method, url, answer) if hops < _HOPS else None
            if there is None:
                if lasting and hops and 200 <= answer.status < 300:
                    self.url = url
                return answer
            lasting = lasting and answer.status == 308
            hops += 1
            await drained(answer)
            _log.info("%s = %s redirects to %s; put that into its url", self._server, url, there)
            url = there

    def _there(self, method: str, url: HttpUrl, answer: Answer) -> HttpUrl | None:
        """Return where to repeat a request, if the answer says so and it may be."""
        if not redirects(answer.status, post=method == "POST"):
            return None
        there = url.joined(answer.header(b"location") or "")
        return there if there is not None and there.origin == url.origin else None

    async def _asked(self, challenge: Challenge | None) -> list[Header]:
        assert self._auth is not None
        try:
            with anyio.fail_after(self._timeouts.ask):
                given = self._auth(self._server, challenge)
                if inspect.isawaitable(given):
                    given = await given
            if given is None:
                return []
            if not isinstance(given, Mapping):
                raise TypeError(f"it returned {type(given).__name__}, not a mapping or None")
            told = [checked(name, value) for name, value in given.items()]
            self._given = told or self._given
            return told
        except Exception as problem:  # the user's code: it must not end the server
            _log.exception("%s ! auth raised", self._server)
            raise NoCredentials(f"auth raised {type(problem).__name__}") from problem

    def _with(self, headers: list[Header], given: list[Header]) -> list[Header]:
        names = {name for name, _ in given}
        return headers + [one for one in self._fixed if one[0] not in names] + given


async def drained(answer: Answer, limit: int = _DRAINED) -> bytes:
    """Return the beginning of a body and close the answer."""
    parts: list[bytes] = []
    held = 0
    try:
        with anyio.move_on_after(_DRAINING):
            while held < limit and (chunk := await answer.chunk()):
                parts.append(chunk)
                held += len(chunk)
    except Cut:
        pass  # what came says enough
    finally:
        await answer.close()
    return b"".join(parts)[:limit]
