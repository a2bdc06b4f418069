"""What went wrong, as an exit code and one line. Knows every error; prints none.

0 all went well; 1 the command, its arguments or the configuration cannot be meant; 4 the server
cannot be reached or gave no answer; 5 the server or its tool answered no; above 128 a signal.
"""

from __future__ import annotations

from typing import Any

from mcpclient.ground.errors import (
    AccessRefused,
    ConfigError,
    InputRefused,
    LocalProtocolError,
    McpClientError,
    OutputInvalid,
    ReplyError,
    RestartsExhausted,
    ToolError,
    last_words,
)
from mcpclient.ground.text import printable
from mcpclient.protocol.methods import MISSING_CAPABILITY

USAGE = 1
UNREACHABLE = 4
REFUSED = 5
PIPE = 141  # as a program that a closed pipe ends


class Failure(Exception):
    """A command ends here; the text says why and what to do, in one line.

    Attributes:
        exit: The exit code.
        facts: What else is told under ``--json``.
    """

    def __init__(self, problem: str, exit: int = USAGE, **facts: Any) -> None:
        super().__init__(problem)
        self.exit = exit
        self.facts = facts if "type" in facts or exit != USAGE else {"type": "Usage", **facts}


class Interrupted(BaseException):
    """A signal asked us to leave.

    Attributes:
        number: Which.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit(self) -> int:
        """The exit code, as a shell counts."""
        return 128 + self.number


class Hangup(BaseException):
    """Whoever read our output has left."""


def exit_code(problem: McpClientError) -> int:
    """Return the exit code of an error."""
    match problem:
        case ToolError() | ReplyError() | InputRefused() | OutputInvalid():
            return REFUSED
        case ConfigError() | LocalProtocolError():
            return USAGE
        case _:
            return UNREACHABLE


def failure(problem: McpClientError | Failure) -> Failure:
    """Return an error as what a command ends with."""
    if isinstance(problem, Failure):
        return problem
    facts: dict[str, Any] = {"type": type(problem).__name__}
    for name in ("server", "tool", "method", "code", "path", "key"):
        if value := getattr(problem, name, None):
            facts[name] = value
    text = str(problem)
    if isinstance(problem, RestartsExhausted) and problem.incidents:
        # The sentence for programs speaks of policies and of start(); a person at a prompt wants
        # to know how it ended.
        last = problem.incidents[-1]
        how = printable(last.problem) or str(last.exit or "it ended")
        words = "" if "(stderr: " in how else last_words(last.stderr_tail)
        text = f'server "{problem.server}": {how}{words}'
    elif isinstance(problem, AccessRefused) and problem.status == 401:
        said = "; ".join(map(str, problem.challenges)) or "it wants credentials"
        how = "give them with -H 'Authorization: Bearer …', or as \"headers\" of its entry"
        text = f'server "{problem.server}": HTTP 401 ({printable(said, 300)}); {how}'
    elif isinstance(problem, ReplyError) and _would_ask(problem):
        text = f"{text}; it wants to ask you: run it at a terminal, without --json and --no-input"
    elif isinstance(problem, ToolError):
        text = f'tool "{problem.tool}" failed: {text}' if problem.tool else text
    return Failure(text, exit_code(problem), **facts)


def _would_ask(problem: ReplyError) -> bool:
    if problem.code != MISSING_CAPABILITY or not isinstance(problem.data, dict):
        return False
    wanted = problem.data.get("requiredCapabilities")
    return isinstance(wanted, dict) and "elicitation" in wanted
