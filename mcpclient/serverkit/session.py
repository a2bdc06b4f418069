"""One conversation with one client: lines in, items out, each answered by itself.

The seam that transports stand on. A transport feeds :meth:`Session.receive`, runs
:meth:`Session.answer` for each item in a task of its own, and writes the reply. It gives a plain
function that sends what belongs to no request, or to the one request, and never blocks.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from mcpclient import loops
from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol import envelope, methods, oddlines
from mcpclient.protocol.envelope import Outgoing
from mcpclient.serverkit import eras, incoming
from mcpclient.serverkit.asks import CLOSED
from mcpclient.serverkit.errors import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    RpcError,
    unwrapped,
)
from mcpclient.serverkit.exchange import Exchange, Peer
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.incoming import Batch, Fault, Notification, Reply, Request, Response
from mcpclient.serverkit.rounds import AnotherRound, merged
from mcpclient.serverkit.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.loops.base import Waiter
    from mcpclient.serverkit.eras import Era
    from mcpclient.serverkit.exchange import Send
    from mcpclient.serverkit.incoming import Item
    from mcpclient.serverkit.server import Server

_log = logging.getLogger("mcpclient.serverkit")


class Session:
    """One conversation.

    Attributes:
        server: The server.
        id: Its name, where a transport names sessions; else None.
        send: Takes what belongs to no request; None drops it.
        peer: Who is at the other end, unless a request says so itself.
        era: The rules that the opening agreed on; None before it, and in the stateless era.
        state: What is remembered.
        exchanges: The requests that are being answered, by their ids.
        closed: Whether it is over.
        kept: Whether the store has it, or had it.
        ended: Called when it is over: for the transport.
    """

    def __init__(
        self, server: Server, send: Send | None, *, id: str | None, peer: Peer, profile: str
    ) -> None:
        """Made by :meth:`Server.open`."""
        self.server = server
        self.id = id
        self.send = send
        self.peer = peer
        self.profile = profile
        self.era: Era | None = None
        self.state = State(server.page_size)
        self.exchanges: dict[bytes, Exchange] = {}
        self.closed = False
        self.kept = False
        self.ended: Callable[[], object] | None = None
        self.used_at = server.clock()
        # Ids of requests that were received and not begun: loops start tasks in any order, and a
        # cancellation must not overtake what it cancels.
        self._announced: set[bytes] = set()
        self._revoked: set[bytes] = set()
        self._questions: dict[int, Waiter] = {}
        self._next_question = 1

    @property
    def version(self) -> str:
        """The protocol version that the opening agreed on, or an empty string."""
        return self.era.version if self.era is not None else ""

    # -- in --------------------------------------------------------------------------------

    def receive(self, line: bytes, *, claimed: str | None = None) -> list[Item]:
        """Return what a line, or a body, holds: nothing if it is blank, else one item.

        Args:
            line: The bytes.
            claimed: The protocol version that the transport was told beside it, if any.
        """
        items = eras.read(self, line)
        for item in items:
            for one in item.items if isinstance(item, Batch) else (item,):
                if isinstance(one, Request):
                    one.era = eras.of(self, one, claimed)
                    self._announced.add(one.key)
        return items

    def disown(self, items: list[Item]) -> None:
        """Expect no more to be asked to answer what :meth:`receive` gave: another session does."""
        for item in items:
            if isinstance(item, Request):
                self._announced.discard(item.key)

    async def answer(
        self,
        item: Item,
        *,
        send: Send | None = None,
        peer: Peer | None = None,
        cancel: Callable[[], object] | None = None,
        drop: Callable[[], object] | None = None,
    ) -> Reply | None:
        """Answer one item; None if it gets no answer.

        Args:
            item: What :meth:`receive` gave.
            send: Takes what belongs to this request; by default what the session has.
            peer: Who asks; by default the session's.
            cancel: Stops the task that runs this, when the client gives the request up.
            drop: Closes the request's own stream, so that the client must come back for the rest.
        """
        self.used_at = self.server.clock()
        match item:
            case Request():
                return await self._request(item, send, peer or self.peer, cancel, drop)
            case Notification():
                await self._notification(item, send, peer or self.peer)
                return None
            case Response():
                self._settle(item)
                return None
            case Fault(reply=reply):
                return reply
            case Batch(items=items):
                return await self._batch(items, send, peer)

    def refuse(
        self, request: Request, code: int, message: str, data: Any = None, *, status: int = 400
    ) -> Reply:
        """Return the reply that refuses a request, for a transport that finds fault with it."""
        return incoming.refusal(request.id, RpcError(code, message, data), status)

    async def _request(
        self,
        request: Request,
        send: Send | None,
        peer: Peer,
        cancel: Callable[[], object] | None,
        drop: Callable[[], object] | None,
    ) -> Reply | None:
        era = request.era
        key = request.key
        self._announced.discard(key)
        if key in self._revoked:
            self._revoked.discard(key)
            return None
        assert era is not None
        try:
            state = era.admit(self, request)
            if len(self.exchanges) >= self.server.limits.requests:
                raise RpcError(BUSY, f"more than {len(self.exchanges)} requests at once")
            if key in self.exchanges:
                raise RpcError(INVALID_REQUEST, "Invalid request: a request with this id runs")
            exchange = Exchange(
                self,
                request,
                era,
                state=state,
                send=send,
                peer=peer,
                cancel=cancel,
                drop=drop,
            )
        except RpcError as problem:
            return incoming.refusal(request.id, problem, era.status(problem))
        self.exchanges[key] = exchange
        try:
            return await self._answered(exchange, request)
        finally:
            if self.exchanges.get(key) is exchange:
                del self.exchanges[key]

    async def _answered(self, exchange: Exchange, request: Request) -> Reply | None:
        try:
            result = await self.server.serve(exchange)
            if exchange.cancelled:
                return None  # it swallowed the cancellation; there is still no answer
            return _written(request, result)
        except AnotherRound as another:
            return self._another(exchange, request, another)
        except BaseExceptionGroup as group:
            another_round = merged(group)
            if another_round is not None:
                return self._another(exchange, request, another_round)
            failed, rest = group.split((AnotherRound, Exception))
            if failed is None or rest is not None:
                raise  # a cancellation, above all
            return self._broken(exchange, request, failed)
        except Exception as problem:  # the outer edge of a request: the server goes on
            return self._broken(exchange, request, problem)

    def _broken(self, exchange: Exchange, request: Request, problem: BaseException) -> Reply:
        found = unwrapped(problem) if isinstance(problem, Exception) else problem
        if isinstance(found, RpcError):
            return incoming.refusal(request.id, found, exchange.era.status(found))
        # What is inside a server is nobody's business, but what it was told of itself.
        text = str(found) if isinstance(found, LocalProtocolError) else type(found).__name__
        _log.error("! %s failed", request.method, exc_info=found)
        refusal = RpcError(INTERNAL_ERROR, f"Internal error: {text}")
        return incoming.refusal(request.id, refusal, 500)

    def _another(self, exchange: Exchange, request: Request, another: AnotherRound) -> Reply:
        try:
            return _written(request, exchange.era.another_round(exchange, another))
        except (RpcError, LocalProtocolError) as problem:
            return self._broken(exchange, request, problem)

    async def _notification(self, item: Notification, send: Send | None, peer: Peer) -> None:
        if item.method == methods.CANCELLED:
            self._give_up(item)
            return
        if item.method == methods.INITIALIZED:
            self.state.ready = True
            await self.keep()
        hook = self.server.hooks.get("handle_notification")
        if hook is not None:
            try:
                await hook(item.method, item.params.whole(), self.frame(send, peer))
            except Exception:  # the outer edge of a notice: there is nobody to tell
                _log.exception("! handle_notification failed on %s", item.method)

    def _give_up(self, item: Notification) -> None:
        # What is unknown, over, or malformed is ignored (CAN-04).
        id = incoming.legal_id(item.params.get("requestId"))
        if id is None:
            return
        key = incoming.key_of(id)
        exchange = self.exchanges.get(key)
        if exchange is None:
            if key in self._announced:
                self._revoked.add(key)
        elif exchange.request is not None and exchange.request.method != methods.INITIALIZE:
            exchange.give_up()

    async def _batch(self, items: list[Any], send: Send | None, peer: Peer | None) -> Reply | None:
        """Answer all at once, each in a job of its own, so that one can cancel another."""
        loop = loops.current()
        replies: list[Reply | None] = [None] * len(items)
        waiters = [loop.waiter() for _ in items]
        stops: list[Any] = [None] * len(items)

        def begin(place: int, item: Any) -> None:
            async def run() -> None:
                try:
                    replies[place] = await self.answer(
                        item, send=send, peer=peer, cancel=lambda: stops[place].cancel()
                    )
                finally:
                    if not waiters[place].done():
                        waiters[place].set_result(None)

            stops[place] = loop.job(run, "request of a batch")

        for place, item in enumerate(items):
            begin(place, item)
        try:
            for waiter in waiters:
                await waiter
        except BaseException:  # a cancellation: of all of them
            for stop in stops:
                stop.cancel()
            raise
        frames = [reply.frame.rstrip(b"\n") for reply in replies if reply is not None]
        return Reply(b"[" + b",".join(frames) + b"]\n") if frames else None

    # -- out -------------------------------------------------------------------------------

    def frame(self, send: Send | None = None, peer: Peer | None = None) -> Frame:
        """Return a frame outside of any request."""
        era = self.era or eras.unopened(self)
        return Frame(Exchange(self, None, era, state=self.state, send=send, peer=peer or self.peer))

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification that belongs to no request."""
        era = self.era
        told = era.notice(method, params) if era is not None else None
        if told is not None and self.send is not None and not self.closed:
            self.send(Outgoing(envelope.notification(method, told), method, told, self.version))

    def list_changed(self, kind: str) -> None:
        """Tell the client that a list changed, if it was said that it would be told."""
        if self.state.ready and self.server.declares(self.state, kind, "listChanged"):
            self.tell(f"notifications/{kind}/list_changed", {})

    def question(self, method: str, params: Mapping[str, Any], send: Send) -> tuple[int, Waiter]:
        """Send a request to the client, and return its id and what will hold the Response."""
        id = self._next_question
        self._next_question += 1
        waiter = loops.current().waiter()
        # Into the table first: the answer may come before the write returns.
        self._questions[id] = waiter
        version = self.version
        send(Outgoing(envelope.request(id, method, params), method, params, version))
        return id, waiter

    def forget_question(self, id: int) -> bool:
        """Wait for an answer no more; return whether there was none yet."""
        return self._questions.pop(id, None) is not None

    def _settle(self, response: Response) -> None:
        waiter = self._questions.pop(response.id, None) if response.id is not None else None
        if waiter is not None and not waiter.done():
            waiter.set_result(response)

    async def keep(self) -> None:
        """Have the store keep what is remembered, if there is one and the session has a name."""
        store = self.server.lobby.store
        if store is None or self.id is None or self.closed:
            return
        saved = self.state.save()
        try:
            if self.kept and await store.load(self.id) is None:
                return  # another process ended it meanwhile; to save it would bring it back
            await store.save(self.id, saved)
            self.kept = True
        except Exception:  # the edge to somebody else's code: what was done has an answer
            _log.exception("! the store keeps nothing; the session goes on in this process only")

    # -- the application -------------------------------------------------------------------

    async def call(self, request: Any) -> Any:
        """Ask the ``handle_call`` hook about this session, and return its reply."""
        return await self._hook("handle_call")(request, self.frame())

    async def cast(self, request: Any) -> None:
        """Give the ``handle_cast`` hook something to do in this session."""
        await self._hook("handle_cast")(request, self.frame())

    def _hook(self, name: str) -> Callable[..., Any]:
        hook = self.server.hooks.get(name)
        if hook is None:
            raise LocalProtocolError(f"there is no hook {name}")
        return hook

    # -- the end ---------------------------------------------------------------------------

    def close(self, reason: str = "closed") -> None:
        """End it: give up what runs, answer no more. Closing twice is no fault."""
        if self.closed:
            return
        self.closed = True
        for exchange in list(self.exchanges.values()):
            if not exchange.ending:
                exchange.give_up()
        for waiter in list(self._questions.values()):
            if not waiter.done():
                waiter.set_result(CLOSED)
        self._questions.clear()
        if self.ended is not None:
            self.ended()
        self.server.gone(self, reason)


def _written(request: Request, result: Mapping[str, Any]) -> Reply:
    """Return a result as a reply, or the refusal of one that JSON cannot say."""
    id = Raw(request.id)
    try:
        frame = envelope.answer(id, result)
        # Half a character, which some clients could not even read (B27).
        if b"\\ud" in frame and not _is_sound(frame):
            repaired = msgspec.json.decode(oddlines.repaired(frame), type=_Result)
            frame = envelope.answer(id, repaired.result)
    except LocalProtocolError as problem:
        _log.error("! the result of %s cannot be sent: %s", request.method, problem)
        text = "Internal error: the result holds what JSON cannot say"
        return incoming.refusal(request.id, RpcError(INTERNAL_ERROR, text), 500)
    return Reply(frame)


class _Result(Struct):
    result: Raw


def _is_sound(frame: bytes) -> bool:
    try:
        msgspec.json.decode(frame)
    except msgspec.DecodeError:
        return False
    return True
