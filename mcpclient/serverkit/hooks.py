"""Where a program takes part in what a server does by itself: the hooks, by their names.

==================== ======================= ===============================================
hook                 called with             returns
==================== ======================= ===============================================
init                 client_info, frame      nothing
handle_request       method, params, frame   a result, or NEXT for the usual way
handle_notification  method, params, frame   nothing
handle_completion    ref, argument, frame    texts, (texts, total), or a mapping
handle_info          event, frame            nothing; it sends by the frame
handle_call          request, frame          the reply of ``session.call``
handle_cast          request, frame          nothing
terminate            reason, frame           nothing
session_expired      session id, peer        "accept", client info, or "reject"
==================== ======================= ===============================================
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit.functions import kept_in

if TYPE_CHECKING:
    from collections.abc import Callable


class _Next:
    def __repr__(self) -> str:
        return "NEXT"


# What handle_request returns for a request that it leaves to the server.
NEXT: Final = _Next()

NAMES = (
    "init",
    "handle_request",
    "handle_notification",
    "handle_completion",
    "handle_info",
    "handle_call",
    "handle_cast",
    "terminate",
    "session_expired",
)


def hook(call: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    """Return the name of the hook that a function is, and an async function that calls it.

    Raises:
        ConfigError: No hook has its name.
    """
    name = getattr(call, "__name__", "")
    if name not in NAMES:
        raise ConfigError(f"there is no hook {name!r} (known: {', '.join(NAMES)})")

    async def run(*arguments: Any) -> Any:
        return await kept_in(functools.partial(call, *arguments), here=True)

    return name, run
