"""mcpclient: name your MCP servers; it runs them, keeps them running, and answers your calls.

Importing it does nothing and loads as good as nothing: the names below are fetched when they are
first used.
"""

from __future__ import annotations

import typing as _typing

if _typing.TYPE_CHECKING:
    from mcpclient.features.asks import Refuse
    from mcpclient.features.cache import CacheStats
    from mcpclient.features.following import Subscription
    from mcpclient.features.notifications import TickReport, Token
    from mcpclient.features.operation import Operation
    from mcpclient.ground.errors import (
        AccessRefused,
        CallCancelled,
        CallLost,
        CallTimedOut,
        ConfigError,
        HttpError,
        InputRefused,
        LocalProtocolError,
        McpClientError,
        OpeningFailed,
        OutputInvalid,
        ProtocolError,
        RemoteProtocolError,
        ReplyError,
        RestartsExhausted,
        ServerDied,
        ServerUnavailable,
        SpawnFailed,
        ToolError,
        UseAfterClose,
    )
    from mcpclient.ground.exits import Exit
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.ground.version import VERSION as __version__
    from mcpclient.manager.manager import Manager, Reload
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.manager.status import ServerStatus, Status
    from mcpclient.protocol.content import (
        AudioContent,
        EmbeddedResource,
        ImageContent,
        ResourceContents,
        ResourceLink,
        TextContent,
        UnknownContent,
    )
    from mcpclient.protocol.extensions import Extension
    from mcpclient.protocol.types import (
        Completion,
        Prompt,
        PromptArgument,
        PromptMessage,
        PromptResult,
        Resource,
        ResourceResult,
        ResourceTemplate,
        Tool,
        ToolResult,
    )
    from mcpclient.supervision.incidents import Incident
    from mcpclient.supervision.policy import RestartPolicy

__all__ = [
    "AccessRefused",
    "AudioContent",
    "CacheStats",
    "CallCancelled",
    "CallLost",
    "CallTimedOut",
    "Completion",
    "ConfigError",
    "EmbeddedResource",
    "Exit",
    "Extension",
    "HttpError",
    "ImageContent",
    "Incident",
    "InputRefused",
    "Limits",
    "LocalProtocolError",
    "Manager",
    "McpClientError",
    "OpeningFailed",
    "Operation",
    "OutputInvalid",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptResult",
    "ProtocolError",
    "Refuse",
    "Reload",
    "RemoteProtocolError",
    "ReplyError",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceResult",
    "ResourceTemplate",
    "RestartPolicy",
    "RestartsExhausted",
    "Server",
    "ServerDied",
    "ServerSpec",
    "ServerStatus",
    "ServerUnavailable",
    "SpawnFailed",
    "Status",
    "Subscription",
    "TextContent",
    "TickReport",
    "Timeouts",
    "Token",
    "Tool",
    "ToolError",
    "ToolResult",
    "UnknownContent",
    "UseAfterClose",
    "__version__",
]

# Where each name lives.
_HOMES = {
    "features.asks": ("Refuse",),
    "features.cache": ("CacheStats",),
    "features.following": ("Subscription",),
    "features.notifications": ("TickReport", "Token"),
    "features.operation": ("Operation",),
    "ground.errors": (
        "AccessRefused",
        "CallCancelled",
        "CallLost",
        "CallTimedOut",
        "ConfigError",
        "HttpError",
        "InputRefused",
        "LocalProtocolError",
        "McpClientError",
        "OpeningFailed",
        "OutputInvalid",
        "ProtocolError",
        "RemoteProtocolError",
        "ReplyError",
        "RestartsExhausted",
        "ServerDied",
        "ServerUnavailable",
        "SpawnFailed",
        "ToolError",
        "UseAfterClose",
    ),
    "ground.exits": ("Exit",),
    "ground.options": ("Limits", "Timeouts"),
    "manager.manager": ("Manager", "Reload"),
    "manager.server": ("Server",),
    "manager.spec": ("ServerSpec",),
    "manager.status": ("ServerStatus", "Status"),
    "protocol.content": (
        "AudioContent",
        "EmbeddedResource",
        "ImageContent",
        "ResourceContents",
        "ResourceLink",
        "TextContent",
        "UnknownContent",
    ),
    "protocol.extensions": ("Extension",),
    "protocol.types": (
        "Completion",
        "Prompt",
        "PromptArgument",
        "PromptMessage",
        "PromptResult",
        "Resource",
        "ResourceResult",
        "ResourceTemplate",
        "Tool",
        "ToolResult",
    ),
    "supervision.incidents": ("Incident",),
    "supervision.policy": ("RestartPolicy",),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> _typing.Any:
    from importlib import import_module

    if name == "__version__":
        found = import_module("mcpclient.ground.version").VERSION
    elif name in _HOME_OF:
        found = getattr(import_module(f"mcpclient.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'mcpclient' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
