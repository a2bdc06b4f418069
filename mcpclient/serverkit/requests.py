"""Questions as requests to the client, while the handler waits: the handshake era's way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient import loops
from mcpclient.ground.text import seconds
from mcpclient.protocol import envelope, methods
from mcpclient.protocol.envelope import Outgoing
from mcpclient.serverkit import asks as questions
from mcpclient.serverkit import incoming
from mcpclient.serverkit.asks import CLOSED
from mcpclient.serverkit.errors import AskFailed, AskInvalid, AskRefused, AskTimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.loops.base import Waiter
    from mcpclient.serverkit.asks import Ask
    from mcpclient.serverkit.exchange import Exchange, Send


class _Open(Struct):
    ask: Ask
    id: int
    waiter: Waiter


class Requests:
    """Asks by requests, and waits for the answers.

    Args:
        exchange: Whose handler asks.
        adapt: Makes the params what the version of the protocol has.
    """

    def __init__(
        self, exchange: Exchange, adapt: Callable[[str, dict[str, Any]], dict[str, Any]]
    ) -> None:
        self._exchange = exchange
        self._adapt = adapt

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        send = self._exchange.send
        return await ask_all(self._exchange, asks, self._adapt, send)

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """See :class:`~mcpclient.serverkit.asks.Asker`. The handler runs only once."""
        return await make()


async def ask_all(
    exchange: Exchange,
    asks: Mapping[str, Ask],
    adapt: Callable[[str, dict[str, Any]], dict[str, Any]],
    send: Send | None,
) -> dict[str, Any]:
    """Send all the questions, and return the answers by their keys."""
    session = exchange.session
    for ask in asks.values():
        questions.require(exchange.state.client_capabilities, ask)
    if send is None or session.closed:
        raise AskFailed(next(iter(asks.values())).method, "there is no way to the client")
    limit = exchange.server.ask_timeout
    opened: dict[str, _Open] = {}
    timed_out: list[bool] = []
    timer = None
    try:
        for key, ask in asks.items():
            id, waiter = session.question(ask.method, adapt(ask.method, ask.params), send)
            opened[key] = _Open(ask, id, waiter)

        def expire() -> None:
            timed_out.append(True)
            for one in opened.values():
                if not one.waiter.done():
                    one.waiter.set_result(None)

        if limit is not None:
            timer = loops.current().later(limit, expire)
        return {key: _answer(one, await one.waiter, limit) for key, one in opened.items()}
    finally:
        if timer is not None:
            timer.cancel()
        for one in opened.values():
            # What has no answer yet is not wanted any more: the person need not go on.
            if session.forget_question(one.id) and not session.closed:
                reason = "timed out" if timed_out else "not needed any more"
                told = {"requestId": one.id, "reason": reason}
                send(Outgoing(envelope.notification(methods.CANCELLED, told), methods.CANCELLED))


def _answer(one: _Open, outcome: Any, limit: float | None) -> Any:
    method = one.ask.method
    if outcome is None:
        raise AskTimedOut(method, f"no answer within {seconds(limit or 0.0)}")
    if outcome is CLOSED:
        raise AskFailed(method, "the client is gone")
    if outcome.error:
        code, message, data = incoming.error_of(outcome.error)
        raise AskRefused(method, code, message, data)
    try:
        answer = incoming.plain(outcome.result, method)
    except ValueError as problem:
        raise AskInvalid(method, f"the answer cannot be read: {problem}") from None
    return questions.parsed(one.ask, answer)
