"""How servers of each kind are started or reached, and what those of one manager share for it.

The machinery of each kind is loaded when the first server of it is dialled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import CapacityLimiter

from mcpclient.connection.dialing import Proven

if TYPE_CHECKING:
    from mcpclient.loops.base import Loop
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.protocol.mirror import Mirror
    from mcpclient.transports.base import Transport
    from mcpclient.transports.http import Pools
    from mcpclient.transports.watchdog import Watchdog

# Starting a process takes a core for milliseconds; more of them at once only get in each other's
# way, and in that of the loop.
_SPAWNERS = 2


class Ways:
    """The ways to the servers of one manager.

    Attributes:
        loop: The loop that runs this code.
        watchdog: Ends the processes if the host dies; None before the first.
    """

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.watchdog: Watchdog | None = None
        self._limiter = CapacityLimiter(_SPAWNERS)
        self._pools: Pools | None = None
        self._known: dict[str, Proven] = {}

    async def connect(
        self, name: str, spec: ServerSpec, mirror: Mirror | None, *, old: bool = False
    ) -> Transport:
        """Start a server's process, or reach a server that runs elsewhere.

        Args:
            name: The server's name.
            spec: How it is run or reached.
            mirror: Which arguments go into headers, where there are headers.
            old: Whether to reach it by the HTTP transport of 2024-11-05.
        """
        if spec.type == "stdio":
            return await self._spawned(spec)
        if spec.type == "stream":
            from mcpclient.transports import streams

            assert spec.url is not None
            return await streams.dial(
                spec.url, loop=self.loop, timeouts=spec.timeouts, limits=spec.limits
            )
        return self._web(name, spec, mirror, old=old or spec.type == "sse")

    def logged(self, transport: Transport, spec: ServerSpec) -> Transport:
        """Return a transport that also writes down what it carries, if the spec wants it."""
        if spec.wire_log is None:
            return transport
        from mcpclient.transports import logs

        secrets = {**spec.env, **spec.headers}
        return logs.WireLog(transport, spec.wire_log, spec.limits.log, secrets)

    def known_of(self, spec: ServerSpec) -> Proven:
        """Return what is known of an endpoint, whoever found it out (ERA-10).

        By URL and not by origin: a gateway has servers of both eras behind one.
        """
        if spec.type == "sse":
            return Proven(old=True)
        return self._known.setdefault(spec.url or "", Proven())

    async def close(self) -> None:
        """Let go of what is shared. Cancelling does not shorten it."""
        if self.watchdog is not None:
            self.watchdog.close()
        if self._pools is not None:
            await self._pools.close()

    async def _spawned(self, spec: ServerSpec) -> Transport:
        from mcpclient.transports import process, stdio, watchdog

        if self.watchdog is None:
            self.watchdog = watchdog.Watchdog()
        return await stdio.spawn(
            process.Command(spec.argv, spec.env, spec.cwd, spec.inherit_env),
            loop=self.loop,
            limiter=self._limiter,
            timeouts=spec.timeouts,
            limits=spec.limits,
            kill_tree=spec.kill_tree,
            watchdog=self.watchdog,
            stderr_file=spec.stderr_file,
        )

    def _web(self, name: str, spec: ServerSpec, mirror: Mirror | None, *, old: bool) -> Transport:
        from mcpclient.protocol.mirror import Mirror
        from mcpclient.transports import http
        from mcpclient.transports.urls import http_url

        url = http_url(spec.url or "")
        assert url is not None
        if self._pools is None:
            self._pools = http.Pools(self.loop)
        return http.dial(
            url,
            self._pools,
            server=name,
            headers=spec.headers,
            auth=spec.auth,
            mirror=mirror or Mirror(),
            loop=self.loop,
            timeouts=spec.timeouts,
            limits=spec.limits,
            old=old,
        )
