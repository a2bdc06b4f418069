"""Every error a user may meet, sorted by who must act. Knows no protocol and no process.

McpClientError
  ProtocolError
    LocalProtocolError        you broke a rule
    RemoteProtocolError       the server did
      OutputInvalid           a tool's result is not as the tool declares
  ReplyError                  the server answered no
  ToolError                   the tool answered isError
  CallLost                    no answer came
    CallTimedOut
    CallCancelled
    ServerDied
    HttpError                 an HTTP status came instead
  ServerUnavailable           there is no server to ask
    SpawnFailed
    OpeningFailed
    AccessRefused             it wants other credentials
    RestartsExhausted
  InputRefused                the server asked for something this client does not give
  UseAfterClose               the manager or connection is closed
  ConfigError                 a configuration that cannot be meant
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from mcpclient.ground.text import printable, printable_lines, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpclient.ground.exits import Exit

__all__ = [
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
]


class McpClientError(Exception):
    """Anything this library raises by itself. Its text is one printable line, never empty.

    Only a :class:`ToolError` may have several lines: they are the tool's own.
    """

    def __str__(self) -> str:
        # The parts that come from a server are cut already; this is for the whole.
        text = printable(self._text(), 20_000)
        return text if text.strip() else type(self).__name__

    def _text(self) -> str:
        return printable(super().__str__())

    def again(self) -> Self:
        """Return a copy to raise elsewhere: one exception raised twice mixes its tracebacks."""
        copy = type(self).__new__(type(self))
        copy.args = self.args  # __new__ would not keep them for a CallTimedOut, an OSError too
        copy.__dict__.update(self.__dict__)
        return copy


class ProtocolError(McpClientError):
    """A rule of the protocol was broken."""


class LocalProtocolError(ProtocolError):
    """The caller asked for something the protocol does not allow; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The server sent something the protocol does not allow."""


class OutputInvalid(RemoteProtocolError):
    """A tool ran, and its result does not keep to the output schema that the tool declares.

    Attributes:
        result: The whole result, as :meth:`Server.call_tool` would have returned it.
        problems: What is wrong, one sentence each; they never hold what the tool answered.
        reason: ``value``: the structured content does not fit. ``missing``: there is none. The
            schema cannot be used: ``schema`` (it is none), ``dialect`` (it is in one that is not
            supported), ``reference`` (it refers to what is not in it), ``bounds`` (it, or the
            result, is too large, too deep or too slow).
        tool: The tool's name.
        server: The server's name.
    """

    def __init__(
        self,
        problems: Sequence[str],
        result: Any,
        *,
        reason: str = "value",
        tool: str = "",
        server: str = "",
    ) -> None:
        super().__init__(*problems)
        self.problems = tuple(problems)
        self.result = result
        self.reason = reason
        self.tool = tool
        self.server = server

    def _text(self) -> str:
        said = "; ".join(printable(one, 500) for one in self.problems) or "it is not as declared"
        return (
            f"the result of tool {printable(self.tool, 100)!r}{_at(self.server)}: {said}; the "
            "result is kept in .result, and call_tool() does not check"
        )


class ReplyError(McpClientError):
    """The server answered a request with a JSON-RPC error.

    Attributes:
        code: The JSON-RPC error code.
        message: The server's own words, as received.
        data: The error's ``data`` member, any JSON value, or None.
        method: The method that was refused.
        server: The server's name.
        wants: What a person must do before the same request can succeed, each a mapping with
            ``method`` and ``params``, by its key; nearly always empty.
    """

    def __init__(
        self, code: int, message: str, data: Any = None, *, method: str = "", server: str = ""
    ) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data
        self.method = method
        self.server = server
        self.wants: Mapping[str, Any] = {}

    def _text(self) -> str:
        where = f" ({self.method}{_at(self.server)})" if self.method else ""
        return f"[{self.code}] {printable(self.message) or 'no message'}{where}"


class ToolError(McpClientError):
    """The tool ran and answered ``isError: true``.

    Attributes:
        result: The whole result, as :meth:`Server.call_tool` would have returned it.
        tool: The tool's name.
        server: The server's name.
    """

    def __init__(self, message: str, result: Any, *, tool: str = "", server: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.result = result
        self.tool = tool
        self.server = server

    def __str__(self) -> str:
        text = printable_lines(self.message)
        return text if text.strip() else "tool errored (empty text)"


class CallLost(McpClientError):
    """A call ended without an answer.

    Attributes:
        method: The method that was called.
        server: The server's name.
        maybe_done: False only if the request never reached the server, so that it is safe to
            send it again.
    """

    def __init__(
        self, problem: str, *, method: str = "", server: str = "", maybe_done: bool = True
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.method = method
        self.server = server
        self.maybe_done = maybe_done

    def _text(self) -> str:
        hint = (
            "the server may have carried it out"
            if self.maybe_done
            else "the request was never sent, so it is safe to repeat"
        )
        return f"{self.method or 'call'}{_at(self.server)}: {printable(self.problem)}; {hint}"


class CallTimedOut(CallLost, TimeoutError):
    """No answer came in time. The server was told to stop, if the request had reached it."""


class CallCancelled(CallLost):
    """The call was cancelled from this side: the server was stopped or removed meanwhile."""


class ServerDied(CallLost):
    """The server's process, or the connection to it, ended while the call was in flight.

    Attributes:
        exit: How it ended.
        stderr_tail: The last of what it wrote to stderr.
        reason: Why it was ended, if it was: it closed its stdout, say. Else an empty string.
    """

    def __init__(
        self,
        exit: Exit,
        stderr_tail: str = "",
        *,
        reason: str = "",
        method: str = "",
        server: str = "",
        maybe_done: bool = True,
    ) -> None:
        how = f"{exit}: {reason}" if reason else str(exit)
        super().__init__(
            # Where there is no process of ours, its death is no fact.
            how if exit.words else f"the server died ({how}){last_words(stderr_tail)}",
            method=method,
            server=server,
            maybe_done=maybe_done,
        )
        self.exit = exit
        self.stderr_tail = stderr_tail
        self.reason = reason


class HttpError(CallLost):
    """A server behind a URL answered a call with an HTTP status and no message of the protocol.

    Attributes:
        status: The status, such as 500.
        body: The beginning of what came with it, as text.
        retry_after: In how many seconds the server wants to be asked again, or None.
    """

    def __init__(
        self,
        status: int,
        problem: str,
        *,
        body: str = "",
        retry_after: float | None = None,
        method: str = "",
        server: str = "",
        maybe_done: bool = True,
    ) -> None:
        super().__init__(problem, method=method, server=server, maybe_done=maybe_done)
        self.status = status
        self.body = body
        self.retry_after = retry_after

    def _text(self) -> str:
        hint = (
            "the server may have carried it out"
            if self.maybe_done
            else "the server did not carry it out"
        )
        said = f": {printable(' '.join(self.body.split()), 300)}" if self.body.strip() else ""
        what = f"{self.method or 'call'}{_at(self.server)}"
        return f"{what}: HTTP {self.status}, {printable(self.problem)}{said}; {hint}"


class ServerUnavailable(McpClientError):
    """There is no running server to ask.

    Attributes:
        server: The server's name.
        final: Whether trying again would end the same way.
        retry_after: In how many seconds the server wants to be asked again, or None.
    """

    final = False
    retry_after: float | None = None

    def __init__(self, problem: str, *, server: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.server = server

    def _text(self) -> str:
        named = f'server "{self.server}": ' if self.server else ""
        return f"{named}{printable(self.problem)}"


class SpawnFailed(ServerUnavailable):
    """The server's process could not be started.

    Attributes:
        command: The command that was tried.
        hint: What to do about it.
        final: Whether trying again would end the same way; not so if the machine was too full.
    """

    def __init__(
        self, problem: str, *, command: str, hint: str, server: str = "", final: bool = True
    ) -> None:
        super().__init__(problem, server=server)
        self.command = command
        self.hint = hint
        self.final = final

    def _text(self) -> str:
        named = f' (server "{self.server}")' if self.server else ""
        return f"{printable(self.problem)}{named}; {self.hint}"


class OpeningFailed(ServerUnavailable):
    """The server runs or may run, but no conversation came about.

    Attributes:
        exit: How the process ended, if it did.
        stderr_tail: The last of what it wrote to stderr.
        noise: A sample of what stood on its stdout and was no message.
        final: Whether trying again would end the same way (no common version, refused).
    """

    def __init__(
        self,
        problem: str,
        *,
        server: str = "",
        exit: Exit | None = None,
        stderr_tail: str = "",
        noise: str = "",
        final: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(problem, server=server)
        self.retry_after = retry_after
        self.exit = exit
        self.stderr_tail = stderr_tail
        self.noise = noise
        self.final = final

    def _text(self) -> str:
        return super()._text() + last_words(self.stderr_tail)


class AccessRefused(ServerUnavailable):
    """A server behind a URL answered 401 or 403: it wants credentials, or others.

    Attributes:
        status: 401 or 403.
        challenges: What ``WWW-Authenticate`` says, each with ``scheme`` and ``params``.
        body: The beginning of what came with it, as text.
        method: The method that was refused; the server did not carry it out.
    """

    final = True

    def __init__(
        self,
        status: int,
        challenges: Sequence[Any] = (),
        *,
        body: str = "",
        method: str = "",
        server: str = "",
    ) -> None:
        super().__init__(f"HTTP {status}", server=server)
        self.status = status
        self.challenges = tuple(challenges)
        self.body = body
        self.method = method

    def _text(self) -> str:
        said = "; ".join(str(one) for one in self.challenges) or " ".join(self.body.split())
        asked = f" to {self.method}" if self.method else ""
        step = (
            'give it credentials by "headers", such as {"Authorization": "Bearer ..."}, or by auth='
            if self.status == 401
            else "these credentials do not allow it"
        )
        quoted = f" ({printable(said, 300)})" if said else ""
        return f"{super()._text()}{asked}{quoted}: {step}"


class RestartsExhausted(ServerUnavailable):
    """The server died too often and is no longer restarted until ``start()`` is called.

    Attributes:
        incidents: Its recorded deaths, oldest first.
    """

    def __init__(self, problem: str, incidents: Sequence[Any], *, server: str = "") -> None:
        super().__init__(problem, server=server)
        self.incidents = tuple(incidents)

    def _text(self) -> str:
        return f"{super()._text()}; call start() to try again"


class InputRefused(McpClientError):
    """The server needs an answer from this side that it does not get; the call ended.

    A host may answer by itself: send the same request again with two more params,
    ``inputResponses`` (an answer by each key of ``requests``) and ``requestState`` (``state``, if
    there is one).

    Attributes:
        method: The method whose result asked.
        server: The server's name.
        requests: What it asks, each a mapping with ``method`` and ``params``, by its key.
        state: What to give back as it is, JSON as received, or None.
        reason: Why it gets no answer, or an empty string if nothing answers such.
    """

    def __init__(
        self,
        method: str,
        requests: Mapping[str, Any],
        state: Any = None,
        *,
        server: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(method, reason)
        self.method = method
        self.requests = dict(requests)
        self.state = state
        self.server = server
        self.reason = reason

    @property
    def asks(self) -> tuple[str, ...]:
        """The methods asked for, such as ``elicitation/create``."""
        return tuple(str(request.get("method")) for request in self.requests.values())

    def because(self, reason: str) -> InputRefused:
        """Return the same refusal with a reason."""
        return InputRefused(
            self.method, self.requests, self.state, server=self.server, reason=reason
        )

    def _text(self) -> str:
        wanted = ", ".join(printable(ask) for ask in self.asks) or "another round"
        reason = printable(self.reason) or "nothing here answers that"
        return f"{self.method}{_at(self.server)}: the server asks for {wanted}; {reason}"


class UseAfterClose(McpClientError):
    """The manager is closed, or was never opened."""


class ConfigError(McpClientError):
    """A configuration that cannot be meant.

    Attributes:
        path: The file it came from, or an empty string.
        key: Where in it, as a dotted path.
        problem: What is wrong, with the next step.
    """

    def __init__(self, problem: str, *, key: str = "", path: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.key = key
        self.path = path

    def _text(self) -> str:
        where = ": ".join(part for part in (self.path, self.key) if part)
        return f"{where}: {printable(self.problem)}" if where else printable(self.problem)


def timed_out(waited: float, doing: str, stderr_tail: str = "", noise: str = "") -> str:
    """Return the sentence of a time-out: how long, what for, and what the server said aside."""
    text = f"no answer within {seconds(waited)}{f' {doing}' if doing else ''}"
    return text + odd_words(noise) + last_words(stderr_tail)


def odd_words(noise: str) -> str:
    """Return the sample of what was no message on stdout, as a suffix of an error's text."""
    return f" (not a message of the protocol: '{printable(noise, 300)}')" if noise else ""


def last_words(stderr_tail: str) -> str:
    """Return the last lines of a stderr tail as a suffix of an error's text."""
    lines = [line.strip() for line in stderr_tail.strip().splitlines()[-3:]]
    text = " | ".join(line for line in lines if line)
    return f" (stderr: {printable(text[-400:])})" if text else ""


def _at(server: str) -> str:
    return f' on "{server}"' if server else ""
