"""What a handler may raise, and what becomes of it on the wire. Knows no message.

RpcError                  the request is answered with a JSON-RPC error
  MissingCapability       the client did not declare what it takes to go on
  NotFound                there is no such resource here; the next template may know it
ToolFailure               the tool's result says ``isError``
AskFailed                 the client was asked and gave no answer that can be used
  AskRefused              it answered with an error
  AskTimedOut             it did not answer in time
  AskInvalid              its answer does not fit what was asked
"""

from __future__ import annotations

from typing import Any

from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = methods.METHOD_NOT_FOUND
INVALID_PARAMS = methods.INVALID_PARAMS
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
# Of those that the protocol leaves to implementations; no client attaches a meaning to them.
BUSY = -32000
INSUFFICIENT_SCOPE = -32010


class RpcError(McpClientError):
    """The request is answered with this JSON-RPC error.

    Attributes:
        code: The code.
        message: The sentence for whoever reads it.
        data: Any JSON value, or None to leave it out.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def _text(self) -> str:
        return f"[{self.code}] {printable(self.message)}"


class MissingCapability(RpcError):
    """The client did not declare a capability that is needed.

    Where the protocol has an error for it, that is the answer; elsewhere a tool's result says
    ``isError``.
    """

    def __init__(self, required: dict[str, Any], what: str) -> None:
        super().__init__(
            methods.MISSING_CAPABILITY,
            f"the client does not declare {what}, which this needs",
            {"requiredCapabilities": required},
        )


class NotFound(RpcError):
    """A resource's handler knows nothing of this URI: the next template is tried."""

    def __init__(self, uri: str, code: int = RESOURCE_NOT_FOUND) -> None:
        super().__init__(code, f"Resource not found: {printable(uri, 200)}", {"uri": uri})
        self.uri = uri


class ToolFailure(McpClientError):
    """The tool cannot do it, and the model shall read why: ``isError`` with this content.

    Attributes:
        content: A text, or anything that a tool may return.
    """

    def __init__(self, content: Any) -> None:
        super().__init__(content)
        self.content = content


class AskFailed(McpClientError):
    """The client was asked, and there is no answer to go on with.

    Attributes:
        method: What was asked.
        problem: Why there is none.
    """

    def __init__(self, method: str, problem: str) -> None:
        super().__init__(f"{method}: {problem}")
        self.method = method
        self.problem = problem


class AskRefused(AskFailed):
    """The client answered with an error.

    Attributes:
        code: Its code; -1 says that a person refused.
        data: Its data, or None.
    """

    def __init__(self, method: str, code: int, message: str, data: Any = None) -> None:
        super().__init__(method, f"the client refused: [{code}] {printable(message, 500)}")
        self.code = code
        self.data = data


class AskTimedOut(AskFailed):
    """The client did not answer in time, and was told to stop."""


class AskInvalid(AskFailed):
    """The client's answer does not fit what was asked."""


def refused_scope(required: frozenset[str], missing: frozenset[str]) -> RpcError:
    """Return the answer to a caller that may not do this."""
    named = " ".join(sorted(missing))
    return RpcError(
        INSUFFICIENT_SCOPE, f"insufficient scope: {named}", {"requiredScopes": sorted(required)}
    )


def unwrapped(problem: Exception) -> Exception:
    """Return the one error in a group of one: a task group wraps what its only failure was."""
    while isinstance(problem, ExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem


def said(problem: BaseException) -> str:
    """Return the text of an error, or its name; of a group, those of all that are in it."""
    if isinstance(problem, BaseExceptionGroup):
        return "; ".join(said(one) for one in problem.exceptions)
    return str(problem) or type(problem).__name__
