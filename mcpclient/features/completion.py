"""Completing arguments of prompts and templates while they are typed. Keeps nothing.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError, ReplyError
from mcpclient.protocol.methods import COMPLETE, DECLARED_BY, METHOD_NOT_FOUND
from mcpclient.protocol.types import Completion, Prompt, ResourceTemplate

if TYPE_CHECKING:
    from mcpclient.connection.caller import Caller, Timeout

Ref = Prompt | ResourceTemplate | Mapping[str, Any] | str
# What of a reference names what it refers to.
_NAMED_BY = {"ref/prompt": "name", "ref/resource": "uri"}


async def complete(
    caller: Caller,
    ref: Ref,
    argument: str,
    value: str,
    context: Mapping[str, str] | None,
    timeout: Timeout,
) -> Completion:
    """Return what a server offers; nothing if it does not complete."""
    params: dict[str, Any] = {
        "ref": _reference(ref),
        "argument": {
            "name": _text("the argument's name", argument),
            "value": _text("the value", value),
        },
    }
    chosen = {
        _text("a name in the context", name): _text(f"{name!r} in the context", one)
        for name, one in (context or {}).items()
    }
    connection, left = await caller.line(timeout, COMPLETE)
    era, terms = connection.session.era, connection.session.terms
    declared = terms.capabilities if terms is not None else {}
    # A server that declared nothing at all may have forgotten to.
    if declared and era.declares_completions and DECLARED_BY[COMPLETE] not in declared:
        return Completion()
    if chosen and era.completes_in_context:
        params["context"] = {"arguments": chosen}
    try:
        return Completion(await connection.request(COMPLETE, params, left))
    except ReplyError as problem:
        if problem.code == METHOD_NOT_FOUND:
            return Completion()
        raise


def _reference(ref: Any) -> dict[str, str]:
    """Return what is sent of a reference: what names it, and nothing that versions differ in."""
    if isinstance(ref, str):
        template = "{" in ref or "://" in ref
        return {"type": "ref/resource", "uri": ref} if template else _prompt(ref)
    if isinstance(ref, Prompt):
        return _prompt(ref.name)
    if isinstance(ref, ResourceTemplate):
        return {"type": "ref/resource", "uri": ref.uri_template}
    kind = ref.get("type") if isinstance(ref, Mapping) else None
    key = _NAMED_BY.get(kind) if isinstance(kind, str) else None
    if kind is not None and key is not None and isinstance(name := ref.get(key), str):
        return {"type": kind, key: name}
    raise LocalProtocolError(
        "what is completed must be a prompt, a resource template, its name or URI, or a mapping "
        'such as {"type": "ref/prompt", "name": "…"} or {"type": "ref/resource", "uri": "…"}'
    )


def _prompt(name: str) -> dict[str, str]:
    return {"type": "ref/prompt", "name": name}


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise LocalProtocolError(
            f"{what} must be text, not {type(value).__name__}; write it as a string"
        )
    return value
