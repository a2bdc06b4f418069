"""What a server may ask a client: sampling, roots, elicitation. Builds and reads; sends nothing.

An :class:`Ask` is one question, whole and checked before anything is sent. How it travels, as a
request or in a result that asks for another round, is the era's business.

https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Struct

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.serverkit.errors import AskInvalid, MissingCapability

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Mapping, Sequence

SAMPLE = "sampling/createMessage"
ROOTS = "roots/list"
ELICIT = "elicitation/create"
# What a question is answered with when the conversation is over.
CLOSED: Final = object()


class Sampled(Struct, frozen=True):
    """What a model said.

    Attributes:
        role: Who says it.
        content: The block, or the blocks.
        model: Which model.
        stop_reason: Why it stopped, or None.
        raw: The whole answer.
    """

    role: str
    content: Any
    model: str
    stop_reason: str | None
    raw: dict[str, Any]

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text")


class Root(Struct, frozen=True):
    """One of the client's roots."""

    uri: str
    name: str | None = None


class Elicited(Struct, frozen=True):
    """What a person answered.

    Attributes:
        action: ``accept``, ``decline`` or ``cancel``.
        content: What was entered, checked: a value of the form's type, or a mapping; None unless
            it was accepted.
        raw: What was entered, as a mapping.
    """

    action: str
    content: Any = None
    raw: dict[str, Any] = {}

    @property
    def accepted(self) -> bool:
        """Whether there is an answer."""
        return self.action == "accept"


class Ask(Struct, frozen=True):
    """One question.

    Attributes:
        method: What is asked.
        params: With which params.
        needs: The capability that the client must have declared, as a path.
        parse: Makes the answer of what the client sent.
    """

    method: str
    params: dict[str, Any]
    needs: tuple[str, ...]
    parse: Callable[[dict[str, Any]], Any]


class Asker(Protocol):
    """How questions reach the client, within one request, and how answers come back."""

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """Return the answers, parsed, by the keys of the questions.

        Raises:
            MissingCapability: The client cannot be asked that.
            AskFailed: There is no answer.
        """

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Return a value that is made once, however often the handler is run."""


class NoAsker:
    """Where nothing can be asked: outside of a request, in an era that has only rounds."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """See :class:`Asker`."""
        raise LocalProtocolError(self._reason)

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """See :class:`Asker`."""
        return await make()


# -- the questions -------------------------------------------------------------------------


def sample(
    messages: str | Sequence[Mapping[str, Any]],
    *,
    max_tokens: int = 1000,
    system: str | None = None,
    hints: Sequence[str] = (),
    cost: float | None = None,
    speed: float | None = None,
    intelligence: float | None = None,
    temperature: float | None = None,
    stop: Sequence[str] | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Mapping[str, Any] | None = None,
    **more: Any,
) -> Ask:
    """Return the question what a model says to this.

    Args:
        messages: A text of the user, or messages with ``role`` and ``content``.
        max_tokens: How much it may say.
        system: A system prompt.
        hints: Names of models, the best first.
        cost: How much the price matters, from 0 to 1.
        speed: How much the speed matters.
        intelligence: How much the wits matter.
        temperature: The temperature.
        stop: Texts that end it.
        tools: Tools that the model may use.
        tool_choice: Whether it must.
        more: Other members of the params.

    Raises:
        LocalProtocolError: It cannot be asked like that.
    """
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    listed = [dict(message) for message in messages]
    if not listed or not all(one.get("role") in ("user", "assistant") for one in listed):
        raise LocalProtocolError("sampling needs messages, each with a role and a content")
    if type(max_tokens) is not int or max_tokens < 1:
        raise LocalProtocolError(f"max_tokens must be at least 1, not {max_tokens!r}")
    for name, value in {"cost": cost, "speed": speed, "intelligence": intelligence}.items():
        if value is not None and not 0 <= value <= 1:
            raise LocalProtocolError(f"{name} must be from 0 to 1, not {value!r}")
    preferences = {
        "hints": [{"name": hint} for hint in hints] or None,
        "costPriority": cost,
        "speedPriority": speed,
        "intelligencePriority": intelligence,
    }
    params = {
        "messages": listed,
        "maxTokens": max_tokens,
        "systemPrompt": system,
        "modelPreferences": _present(preferences) or None,
        "temperature": temperature,
        "stopSequences": list(stop) if stop is not None else None,
        "tools": [dict(tool) for tool in tools] if tools is not None else None,
        "toolChoice": dict(tool_choice) if tool_choice is not None else None,
        **more,
    }
    needs = ("sampling", "tools") if tools is not None or tool_choice is not None else ("sampling",)
    return Ask(SAMPLE, _present(params), needs, _sampled)


def roots() -> Ask:
    """Return the question what the client's roots are."""
    return Ask(ROOTS, {}, ("roots",), _roots)


def elicit(message: str, form: Any) -> Ask:
    """Return the question that a person answers by a form.

    Args:
        message: What the person reads.
        form: A flat struct type, or a flat JSON Schema: strings, numbers, integers, booleans and
            choices.

    Raises:
        LocalProtocolError: It is no form.
    """
    from mcpclient.serverkit.forms import Form  # few tools ask anything

    made = Form(form)
    params = {"mode": "form", "message": message, "requestedSchema": made.schema}

    def parse(answer: dict[str, Any]) -> Elicited:
        action = _action(answer)
        if action != "accept":
            return Elicited(action)
        entered = answer.get("content")
        if not isinstance(entered, dict):
            raise AskInvalid(ELICIT, "it was accepted without a content")
        content, problem = made.read(entered)
        if problem:
            raise AskInvalid(ELICIT, problem)
        return Elicited(action, content, entered)

    return Ask(ELICIT, params, ("elicitation", "form"), parse)


def elicit_url(message: str, url: str, *, id: str | None = None) -> Ask:
    """Return the question whether a person will visit a page; the answer says no more than that.

    Args:
        message: What the person reads.
        url: The page, ``https`` or on this machine.
        id: What :meth:`Frame.elicitation_complete` names it by; by default something random.

    Raises:
        LocalProtocolError: The page's address is none that a client will open.
    """
    from urllib.parse import urlsplit  # few tools ask anything

    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise LocalProtocolError(f"a page must be https, or http on this machine: {url!r}")
    if id is None:
        from secrets import token_urlsafe

        id = token_urlsafe(12)
    params = {"mode": "url", "message": message, "url": url, "elicitationId": id}
    return Ask(ELICIT, params, ("elicitation", "url"), lambda answer: Elicited(_action(answer)))


# -- the answers ---------------------------------------------------------------------------


def require(capabilities: Mapping[str, Any], ask: Ask) -> None:
    """Check that a client that declares these capabilities can be asked.

    Raises:
        MissingCapability: It cannot.
    """
    found: Any = capabilities
    for place, name in enumerate(ask.needs):
        if not isinstance(found, dict) or found.get(name) is None:
            # Who declares "elicitation" and no mode means forms.
            if not (ask.needs[place - 1] == "elicitation" and name == "form" and found == {}):
                raise missing(ask.needs)
            return
        found = found[name]


def missing(needs: tuple[str, ...]) -> MissingCapability:
    """Return the error that a client lacks a capability."""
    required: dict[str, Any] = {}
    for name in reversed(needs):
        required = {name: required}
    return MissingCapability(required, ".".join(needs))


def parsed(ask: Ask, answer: Any) -> Any:
    """Return the answer to a question.

    Raises:
        AskInvalid: It is none.
    """
    if not isinstance(answer, dict):
        raise AskInvalid(ask.method, "the answer is no object")
    return ask.parse(answer)


def key_for(ask: Ask, used: Container[str]) -> str:
    """Return a key that is the same whenever the handler is run again."""
    kind = {SAMPLE: "sample", ROOTS: "roots"}.get(ask.method, "elicit")
    number = 1
    while f"{kind}_{number}" in used:
        number += 1
    return f"{kind}_{number}"


def _sampled(answer: dict[str, Any]) -> Sampled:
    role, content = answer.get("role"), answer.get("content")
    if not isinstance(role, str) or not isinstance(content, dict | list):
        raise AskInvalid(SAMPLE, "the answer has no role or no content")
    model, stop = answer.get("model"), answer.get("stopReason")
    return Sampled(
        role,
        content,
        model if isinstance(model, str) else "",
        stop if isinstance(stop, str) else None,
        answer,
    )


def _roots(answer: dict[str, Any]) -> list[Root]:
    try:
        return msgspec.convert(answer.get("roots"), list[Root])
    except msgspec.ValidationError as problem:
        raise AskInvalid(ROOTS, f"the answer has no roots: {problem}") from None


def _action(answer: dict[str, Any]) -> str:
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise AskInvalid(ELICIT, "the answer has no action")
    assert isinstance(action, str)
    return action


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
