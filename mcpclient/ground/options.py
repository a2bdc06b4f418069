"""Every wait and every buffer has its number here. Knows nothing of who waits or fills."""

from __future__ import annotations

from msgspec import Struct


class Timeouts(Struct, frozen=True, kw_only=True, gc=False):
    """How long anything may take, in seconds. None means no limit.

    Attributes:
        open: From the spawn of the process until the server is up.
        probe: How long ``server/discover`` may stay unanswered before ``initialize`` is tried.
        call: A call that names no ``timeout`` of its own, waiting for the server included.
        ask: How long a handler may take to answer what a server asks: a person may be asked.
        call_max: The hard end of a call whose progress notices keep extending its time-out, and
            of waiting for the result of an operation.
        write: How long a message may wait for a server that does not read its input.
        eof: From closing the server's input to SIGTERM, or to closing a socket altogether.
        term: From SIGTERM to SIGKILL.
        check: Reading one output schema, and checking one result against it.
        settle: The least time between two notices that the same list changed; those that come
            sooner are told as one, when it is over.
    """

    open: float | None = 30.0
    probe: float = 5.0
    call: float | None = 60.0
    ask: float | None = 600.0
    call_max: float | None = 600.0
    write: float = 10.0
    eof: float = 2.0
    term: float = 2.0
    check: float = 2.0
    settle: float = 0.1

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Timeouts.{name} must be above 0 seconds, not {value!r}")


class Limits(Struct, frozen=True, kw_only=True, gc=False):
    """How much anything may hold. Bytes, or counts where the name says so. None means no limit.

    Attributes:
        frame: The longest message accepted from a server; a longer one is skipped, and the call
            it answers fails.
        stderr: How much of the end of a server's stderr is kept.
        inbox: How many notifications wait for delivery, per server; the oldest are dropped.
        outbox: How many bytes may wait for a server that does not read.
        retired: How many ids of abandoned calls are remembered, to drop their late answers.
        noise: How much of what is no message on stdout is kept as a sample.
        connections: How many calls to a server behind an HTTP URL are on the wire at the same
            time; others wait. A few at first, more only while those are slow.
        asks: How many requests of a server are answered at the same time; more are refused.
        rounds: How often one call may ask for another round.
        pages: How many pages one list may have.
        log: How long a server's stderr file or wire log may grow before it is begun anew; the
            one before is kept beside it.
        schemas: How many bytes of output schemas are kept ready to check results; a longer one is
            not used.
        incidents: How many deaths of a server are remembered.
        cache_entries: How many reads the cache keeps, over all servers.
        cache_bytes: How many bytes the cache keeps, over all servers.
    """

    frame: int | None = 64 * 1024 * 1024
    stderr: int = 64 * 1024
    inbox: int = 1000
    outbox: int | None = 64 * 1024 * 1024
    retired: int = 1000
    noise: int = 2048
    connections: int = 64
    asks: int = 16
    rounds: int = 10
    pages: int = 1000
    log: int = 8 * 1024 * 1024
    schemas: int = 4 * 1024 * 1024
    incidents: int = 20
    cache_entries: int = 1000
    cache_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"Limits.{name} must be at least 1, not {value!r}")
