"""mcpclient for code that waits: the same verbs without await, from any thread.

``with Manager({"git": ["mcp-server-git"]}) as manager`` opens it, or :meth:`Manager.open`; what was
not closed is closed when the interpreter ends. Many threads may call at once. Ctrl-C ends the call
that waits, cancels it at the server, and leaves the manager usable. A fork of the process cannot
use the manager, and is told so.
"""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from mcpclient.blocking.manager import Manager
    from mcpclient.blocking.operation import Operation
    from mcpclient.blocking.server import Server
    from mcpclient.blocking.subscription import Subscription

__all__ = ["Manager", "Operation", "Server", "Subscription"]


def __getattr__(name: str) -> _typing.Any:
    # Each lives in the module of its name, which is loaded when it is first used.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"{__name__}.{name.lower()}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
