"""Results that want another round: the asks in them are answered and the call is made again.

To the caller it is one await. Waiting for a person runs against no request's time-out: the first
request has ended when it asks, the next one begins when it is answered.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.features.asks import Refuse
from mcpclient.ground.errors import InputRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from mcpclient.features.asks import Asks

# The pause before a round that asks nothing, in seconds, times the number of the round.
_PAUSE = 0.05


async def answered(
    send: Callable[[Mapping[str, Any]], Awaitable[Raw]],
    params: Mapping[str, Any],
    asks: Asks,
    server: Any,
    most: int,
    needed: InputRefused | None = None,
) -> Raw:
    """Return the final result of a call, answering what it asks.

    Args:
        send: Sends the call with the params it is given; raises InputRefused if it asks.
        params: The params of the first round.
        asks: Who answers.
        server: Told to the handlers.
        most: How many rounds may be asked for.
        needed: What the first round asked, if that has been sent already.

    Raises:
        InputRefused: Something is asked that nothing answers, a handler refuses, or there are
            too many rounds.
    """
    rounds = 0
    extra: dict[str, Any] = {}
    while True:
        if needed is None:
            try:
                return await send({**params, **extra})
            except InputRefused as problem:
                needed = problem
        rounds += 1
        if rounds > most:
            raise needed.because(f"it asks for more than {most} rounds")
        extra = await _round(needed, asks, server)
        needed = None
        if "inputResponses" not in extra:
            await anyio.sleep(_PAUSE * rounds)


async def _round(needed: InputRefused, asks: Asks, server: Any) -> dict[str, Any]:
    """Return the two members that answer a round. All of it is answered, or none (MRTR-01)."""
    unknown = [name for name in needed.asks if not asks.answers(name)]
    if unknown:
        raise needed from None
    responses = {}
    for key, request in needed.requests.items():
        try:
            params = request.get("params")
            responses[key] = await asks.answer(
                server, request["method"], params if isinstance(params, dict) else {}
            )
        except Refuse as problem:
            raise needed.because(problem.message) from problem
    extra: dict[str, Any] = {}
    if needed.requests:
        extra["inputResponses"] = responses
    if needed.state is not None:
        # As it came, to the byte; and never one of an earlier round (MRTR-03, MRTR-05).
        extra["requestState"] = needed.state
    return extra
