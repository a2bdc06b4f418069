"""Questions as rounds of one request: the stateless era's way. Remembers nothing between them.

The handler is run again from its start in each round. What was answered before is answered at
once: the answers travel with the client in ``requestState``, signed, bound to this very request
and to who asks, and good for some minutes only. So any worker that knows the secret can go on, a
restart loses nothing, and a client that never comes back costs nothing. The price is that what
stands before a question may run several times; a coroutine that slept until the answer came
would not, but it would sleep in one process, and for who knows how long.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.serverkit import asks as questions
from mcpclient.serverkit.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.serverkit.asks import Ask
    from mcpclient.serverkit.exchange import Exchange

_MAC = 16


class AnotherRound(BaseException):
    """Ends a run of a handler: the request is answered with these questions.

    No Exception, so that a handler's own ``except`` does not swallow it.

    Attributes:
        asks: The questions by their keys.
    """

    def __init__(self, asks: Mapping[str, Ask]) -> None:
        super().__init__("the client is asked; the handler will be run again")
        self.asks = dict(asks)


class _Sealed(Struct, array_like=True):
    until: int
    request: bytes
    round: int
    answers: dict[str, Any]
    values: dict[str, Any]


class Rounds:
    """What this round brought, and what the ones before did."""

    def __init__(self, exchange: Exchange) -> None:
        """Read ``requestState`` and ``inputResponses``.

        Raises:
            RpcError: They are not as they must be, or the state is not one that was given for this
                request.
        """
        self._exchange = exchange
        self._round = 0
        self._answers: dict[str, Any] = {}
        self._values: dict[str, Any] = {}
        assert exchange.request is not None
        params = exchange.request.params
        if "inputResponses" in params and not params.get("inputResponses"):
            raise RpcError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        self._given = params.value("inputResponses", dict[str, Any], {})
        state = params.value("requestState", str, "")
        if "requestState" in params:
            sealed = _opened(exchange, state)
            self._round = sealed.round
            self._answers = sealed.answers
            self._values = sealed.values

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        for ask in asks.values():
            questions.require(self._exchange.state.client_capabilities, ask)
        found: dict[str, Any] = {}
        open: dict[str, Ask] = {}
        for key, ask in asks.items():
            if key in self._answers:
                found[key] = questions.parsed(ask, self._answers[key])
            elif key in self._given:
                found[key] = self._taken(key, ask)
            else:
                open[key] = ask
        if open:
            raise AnotherRound(open)
        return found

    def _taken(self, key: str, ask: Ask) -> Any:
        answer = self._given[key]
        if not isinstance(answer, dict):
            # Not an answer that does not fit, but no answer: the client's fault, not a person's.
            raise RpcError(INVALID_PARAMS, f"Invalid params: inputResponses.{key} is no object")
        found = questions.parsed(ask, answer)
        self._answers[key] = answer
        return found

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        if key not in self._values:
            self._values[key] = msgspec.to_builtins(await make(), str_keys=True)
        return self._values[key]

    def sealed(self) -> str:
        """Return the state to give to the client.

        Raises:
            RpcError: There were too many rounds, or too much is to be remembered.
        """
        server = self._exchange.server
        if self._round >= server.limits.rounds:
            raise RpcError(
                INVALID_PARAMS, f"the request was repeated more than {self._round} times"
            )
        content = _Sealed(
            int(server.clock() + server.limits.state_ttl),
            _digest(self._exchange),
            self._round + 1,
            self._answers,
            self._values,
        )
        try:
            data = msgspec.json.encode(content)
        except (UnicodeEncodeError, RecursionError):
            raise LocalProtocolError(
                "what the rounds have to remember holds what JSON cannot say: half a character, or "
                "too deep a nesting; give once() another value"
            ) from None
        if len(data) > server.limits.state:
            raise LocalProtocolError(
                f"what the rounds have to remember is over {server.limits.state} bytes "
                "(KitLimits.state)"
            )
        from base64 import urlsafe_b64encode

        return urlsafe_b64encode(_mac(server.secret, data) + data).decode().rstrip("=")


def merged(group: BaseExceptionGroup[BaseException]) -> AnotherRound | None:
    """Return the round that a handler's task group ended with, or None if it ended otherwise."""
    rounds, others = group.split(AnotherRound)
    if rounds is None or (others is not None and others.subgroup(Exception) is not None):
        return None
    found: dict[str, Ask] = {}
    todo: list[BaseException] = [rounds]
    while todo:
        one = todo.pop()
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
        elif isinstance(one, AnotherRound):
            found |= one.asks
    return AnotherRound(found)


def _opened(exchange: Exchange, state: str) -> _Sealed:
    from base64 import b64decode
    from hmac import compare_digest

    server = exchange.server
    refused = RpcError(
        INVALID_PARAMS, "Invalid params: requestState is not one that was given for this request"
    )
    if len(state) > 2 * server.limits.state:
        raise refused
    try:
        whole = b64decode(state + "=" * (-len(state) % 4), b"-_", validate=True)
        mac, data = whole[:_MAC], whole[_MAC:]
        if not compare_digest(mac, _mac(server.secret, data)):
            raise refused
        sealed = msgspec.json.decode(data, type=_Sealed)
    except (ValueError, msgspec.MsgspecError):
        raise refused from None
    if sealed.request != _digest(exchange):
        raise refused
    if server.clock() > sealed.until:
        raise RpcError(INVALID_PARAMS, "Invalid params: requestState has expired; begin anew")
    return sealed


def _digest(exchange: Exchange) -> bytes:
    """Return what tells this request, by this caller, from every other one."""
    import hashlib

    request = exchange.request
    assert request is not None
    params = request.params.whole()
    for name in ("_meta", "inputResponses", "requestState", "task"):
        params.pop(name, None)
    said = [exchange.server.name, exchange.peer.subject or "", request.method, params]
    try:
        written = msgspec.json.encode(said, order="sorted")
    except RecursionError:
        raise RpcError(INVALID_PARAMS, "Invalid params: params cannot be read") from None
    return hashlib.sha256(written).digest()[:_MAC]


def _mac(secret: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(secret, data, "sha256")[:_MAC]
