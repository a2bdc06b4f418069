"""mcpclient: name your MCP servers; it runs them, keeps them running, and answers your calls.

Importing it does nothing and loads no event loop; the names below load what they need when they
are first used.
"""

from __future__ import annotations

from mcpclient.features.asks import Refuse
from mcpclient.features.cache import CacheStats
from mcpclient.features.following import Subscription
from mcpclient.features.notifications import TickReport, Token
from mcpclient.features.operation import Operation
from mcpclient.ground.errors import (
    CallCancelled,
    CallLost,
    CallTimedOut,
    ConfigError,
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
