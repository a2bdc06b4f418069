"""Results that want another round: the asks in them are answered and the call is made again.

To the caller it is one await. Waiting for a person runs against no request's time-out: the first
request has ended when it asks, the next one begins when it is answered.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.features.asks import Refuse
from mcpclient.ground.errors import InputRefused, LocalProtocolError, ReplyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from mcpclient.features.asks import Asks

_OF_A_ROUND = ("inputResponses", "requestState")
# The pause before a round that asks nothing, in seconds, times the number of the round.
_PAUSE = 0.05


async def answered(
    send: Callable[[Mapping[str, Any]], Awaitable[Raw]],
    params: Mapping[str, Any],
    asks: Asks,
    server: Any,
    most: int,
    patience: float | None = None,
    problem: InputRefused | ReplyError | None = None,
) -> Raw:
    """Return the final result of a call, answering what it asks.

    Args:
        send: Sends the call with the params it is given; raises InputRefused if it asks, or a
            ReplyError that wants something to be done first.
        params: The params of the first round.
        asks: Who answers.
        server: Told to the handlers.
        most: How many rounds may be asked for.
        patience: How long the answers to one round may take, in seconds; None for no limit.
        problem: What the first round asked, if that has been sent already.

    Raises:
        InputRefused: Something is asked that nothing answers, a handler refuses or fails, or
            there are too many rounds.
    """
    rounds = 0
    extra: dict[str, Any] = {}
    visited: set[str] = set()
    while True:
        if problem is None:
            try:
                return await send({**params, **extra})
            except (InputRefused, ReplyError) as found:
                problem = found
        rounds += 1
        if isinstance(problem, ReplyError):
            # Consent is not yet success: what was agreed to is not asked for again, but told to
            # the caller, who may call again when it is done (ELI-18).
            new = {key: problem.wants[key] for key in problem.wants if key not in visited}
            if rounds > most or not new or not await _agreed(problem, new, asks, server, patience):
                raise problem
            visited.update(new)
            problem = None
            continue
        if rounds > most:
            raise problem.because(f"it asks for more than {most} rounds")
        extra = await _round(problem, asks, server, patience)
        problem = None
        # What a caller who answers by hand gave to the round before is of no use to this one.
        params = {name: params[name] for name in params if name not in _OF_A_ROUND}
        if "inputResponses" not in extra:
            await anyio.sleep(_PAUSE * rounds)


async def _round(
    needed: InputRefused, asks: Asks, server: Any, patience: float | None
) -> dict[str, Any]:
    """Return the two members that answer a round."""
    extra: dict[str, Any] = {}
    if needed.requests:
        extra["inputResponses"] = await answers(needed, asks, server, patience)
    if needed.state is not None:
        # As it came, to the byte; and never one of an earlier round (MRTR-03, MRTR-05).
        extra["requestState"] = needed.state
    return extra


async def _agreed(
    refused: ReplyError,
    wants: Mapping[str, Any],
    asks: Asks,
    server: Any,
    patience: float | None,
) -> bool:
    """Return whether a person agrees to all that must be done first."""
    try:
        needed = InputRefused(refused.method, wants, server=refused.server)
        found = await answers(needed, asks, server, patience)
    except InputRefused as problem:
        raise refused from problem
    return all(answer["action"] == "accept" for answer in found.values())


async def answers(
    needed: InputRefused, asks: Asks, server: Any, patience: float | None
) -> dict[str, Any]:
    """Return an answer by each key of what is asked. All of it is answered, or none (MRTR-01).

    Raises:
        InputRefused: With the reason.
    """
    if not all(asks.answers(method) for method in needed.asks):
        raise needed from None
    asked = [
        (key, request["method"], _mapping(request.get("params")))
        for key, request in needed.requests.items()
    ]
    found: dict[str, Any] = {}
    try:
        # Nobody is asked for the sake of what another question spoils.
        for _, method, params in asked:
            asks.check(method, params)
        with anyio.move_on_after(patience) as scope:
            for key, method, params in asked:
                found[key] = await asks.answer(server, method, params)
    except Refuse as problem:
        raise needed.because(problem.message) from problem
    except LocalProtocolError as problem:
        raise needed.because(str(problem)) from problem
    except Exception as problem:  # the user's code; it must cost this call and say so
        raise needed.because(f"the handler raised {type(problem).__name__}") from problem
    if scope.cancelled_caught:
        raise needed.because("nobody answered in time (Timeouts.ask)")
    return found


def _mapping(params: Any) -> dict[str, Any]:
    return params if isinstance(params, dict) else {}
