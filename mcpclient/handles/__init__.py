"""mcpclient for hosts that own their loop: every verb returns a handle at once.

No verb blocks, and none raises for what a server does. :meth:`Manager.tick` delivers what has
come: completions, notifications, progress, what servers ask; on the thread that calls it, in the
order of arrival. :meth:`Manager.set_wakeup` has the host told when there is something to take.
"""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from mcpclient.handles.handle import Handle
    from mcpclient.handles.manager import Manager
    from mcpclient.handles.operation import Operation
    from mcpclient.handles.server import Server
    from mcpclient.handles.subscription import Subscription

__all__ = ["Handle", "Manager", "Operation", "Server", "Subscription"]


def __getattr__(name: str) -> _typing.Any:
    # Each lives in the module of its name, which is loaded when it is first used.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__name__}.{name.lower()}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
