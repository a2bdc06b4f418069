"""What answers which method, the same in both eras but for what the era is asked about.

https://modelcontextprotocol.io/specification/2026-07-28/schema
"""

from __future__ import annotations

from typing import Any, cast

from mcpclient import loops
from mcpclient.ground.text import printable
from mcpclient.serverkit import response
from mcpclient.serverkit.common import allowed, declared, offered, params_of, sorted_by, visible
from mcpclient.serverkit.components import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    Component,
    Prompt,
    Resource,
)
from mcpclient.serverkit.errors import BUSY, INVALID_PARAMS, NotFound, RpcError
from mcpclient.serverkit.exchange import Exchange
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.functions import called
from mcpclient.serverkit.listening import Listener
from mcpclient.serverkit.paging import page
from mcpclient.serverkit.schema import Invalid, refused
from mcpclient.serverkit.state import LEVELS
from mcpclient.serverkit.uris import LONGEST

# The most that a completion may give (CPL-04).
_VALUES = 100


async def ping(exchange: Exchange) -> dict[str, Any]:
    """Say that the server is there."""
    return {}


# -- lists ---------------------------------------------------------------------------------


async def list_tools(exchange: Exchange) -> dict[str, Any]:
    """List the tools that the caller may use, by name."""
    return _listed(exchange, TOOLS, "tools")


async def list_prompts(exchange: Exchange) -> dict[str, Any]:
    """List the prompts that the caller may use, by name."""
    return _listed(exchange, PROMPTS, "prompts")


async def list_resources(exchange: Exchange) -> dict[str, Any]:
    """List the resources that the caller may read, by name."""
    return _listed(exchange, RESOURCES, "resources")


async def list_templates(exchange: Exchange) -> dict[str, Any]:
    """List the templates that the caller may use, by name."""
    return _listed(exchange, TEMPLATES, "resourceTemplates")


def _listed(exchange: Exchange, kind: str, member: str) -> dict[str, Any]:
    declared(exchange, RESOURCES if kind == TEMPLATES else kind)
    found = visible(exchange, kind)
    params = params_of(exchange)
    # "" is a cursor like another, and none of ours.
    cursor = params.value("cursor", str, "") if params.get("cursor") else None
    part, following = page(found, sorted_by, exchange.state.page_size, kind, cursor)
    era = exchange.era
    result: dict[str, Any] = {member: [era.item(one.describe()) for one in part]}
    if following is not None:
        result["nextCursor"] = following
    return era.cacheable(exchange, result, found)


# -- prompts -------------------------------------------------------------------------------


async def get_prompt(exchange: Exchange) -> dict[str, Any]:
    """Fill in a prompt."""
    declared(exchange, PROMPTS)
    params = params_of(exchange)
    name = params.text("name")
    prompt = cast("Prompt | None", exchange.server.components(PROMPTS, exchange.state).get(name))
    if prompt is None:
        raise RpcError(INVALID_PARAMS, f"Prompt not found: {printable(name, 200)}")
    allowed(exchange, prompt)
    try:
        args = prompt.read(params)
    except Invalid as problem:
        raise refused(problem) from None
    frame = Frame(exchange)
    value = await called(prompt.get_messages, args, frame)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Frame):
        value = value[0]  # the frame writes through; there is nothing to take over
    result = response.prompt_result(value)
    if "description" not in result and (words := prompt.documented()) is not None:
        result["description"] = words
    return exchange.era.prompt_result(result)


# -- resources -----------------------------------------------------------------------------


async def read_resource(exchange: Exchange) -> dict[str, Any]:
    """Read a resource: the one of this URI, else the first template that knows it."""
    declared(exchange, RESOURCES)
    uri = params_of(exchange).text("uri")
    frame = Frame(exchange)
    static = cast("Resource | None", offered(exchange, RESOURCES).get(uri))
    if static is not None:
        allowed(exchange, static)
        return await _contents(exchange, static, uri, {}, frame) or _missing(exchange, uri)
    refusal: RpcError | None = None
    templates = cast("dict[str, Resource]", offered(exchange, TEMPLATES))
    for _, one in sorted(templates.items()):
        assert one.template is not None
        variables = one.template.match(uri)
        if variables is None:
            continue
        try:
            allowed(exchange, one)
        except RpcError as problem:
            refusal = problem
            continue
        if (found := await _contents(exchange, one, uri, variables, frame)) is not None:
            return found
    if refusal is not None:
        raise refusal
    return _missing(exchange, uri)


async def _contents(
    exchange: Exchange, one: Resource, uri: str, variables: dict[str, str], frame: Frame
) -> dict[str, Any] | None:
    try:
        value = await called(one.read, uri, variables, frame)
    except NotFound:
        return None
    if value is None:
        return None
    result = response.resource_result(value, uri, one.mime_type)
    return exchange.era.cacheable(exchange, result, [one])


def _missing(exchange: Exchange, uri: str) -> dict[str, Any]:
    raise exchange.era.not_found(uri)


async def subscribe(exchange: Exchange) -> dict[str, Any]:
    """Tell the client from now on when a resource changes."""
    declared(exchange, RESOURCES, "subscribe")
    uri = params_of(exchange).text("uri")
    if len(uri) > LONGEST:
        raise RpcError(INVALID_PARAMS, f"Invalid params: the URI has over {LONGEST} characters")
    subscribed = exchange.state.subscriptions
    limit = exchange.server.limits.subscriptions
    if len(subscribed) >= limit and uri not in subscribed:
        raise RpcError(BUSY, f"more than {limit} subscriptions at once")
    subscribed.add(uri)
    return {}


async def unsubscribe(exchange: Exchange) -> dict[str, Any]:
    """Tell it no more."""
    declared(exchange, RESOURCES, "subscribe")
    exchange.state.subscriptions.discard(params_of(exchange).text("uri"))
    return {}


async def listen(exchange: Exchange) -> dict[str, Any]:
    """Tell of changes until the client, or the server, ends it (SUB-01 to SUB-08)."""
    server, params = exchange.server, params_of(exchange)
    if not params.get("notifications"):
        raise RpcError(INVALID_PARAMS, "Missing parameter: notifications")
    if len(server.listeners) >= server.limits.listeners:
        raise RpcError(BUSY, f"more than {len(server.listeners)} subscriptions at once")
    listener = Listener.made(exchange, params.value("notifications", dict[str, Any], {}))
    waiter = loops.current().waiter()
    listener.waiter = waiter
    server.listeners.add(listener)
    try:
        listener.acknowledge()
        await waiter
    finally:
        server.listeners.discard(listener)
    return {"_meta": listener.meta}


# -- completion, logging -------------------------------------------------------------------


async def complete(exchange: Exchange) -> dict[str, Any]:
    """Say what an argument may be completed to."""
    declared(exchange, "completions")
    params = params_of(exchange)
    ref = params.value("ref", dict[str, Any], {})
    argument = params.value("argument", dict[str, Any], {})
    context = params.value("context", dict[str, Any], {}).get("arguments") or {}
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, "Invalid params: argument must have a name and a value")
    if not isinstance(context, dict):
        raise RpcError(INVALID_PARAMS, "Invalid params: context.arguments must be an object")
    component = _referred(exchange, ref)
    allowed(exchange, component)
    frame = Frame(exchange)
    hook = exchange.server.hooks.get("handle_completion")
    if component.completes or hook is None:
        found = await called(component.complete, name, value, context, frame)
    else:
        found = await hook(ref, argument, frame)
    return {"completion": _completion(found)}


def _referred(exchange: Exchange, ref: dict[str, Any]) -> Component:
    kind, found = ref.get("type"), None
    if kind == "ref/prompt":
        found = offered(exchange, PROMPTS).get(str(ref.get("name")))
    elif kind == "ref/resource":
        uri = ref.get("uri")
        templates = cast("dict[str, Resource]", offered(exchange, TEMPLATES))
        found = next((one for one in templates.values() if one.uri_template == uri), None)
        found = found or offered(exchange, RESOURCES).get(str(uri))
    if found is None:
        raise RpcError(INVALID_PARAMS, "Invalid params: ref names no prompt and no template")
    return found


def _completion(found: Any) -> dict[str, Any]:
    total: Any = None
    more: Any = None
    if isinstance(found, tuple) and len(found) == 2 and not isinstance(found[1], str):
        found, total = found
    if isinstance(found, dict):
        total, more = found.get("total"), found.get("hasMore")
        found = found.get("values")
    values = list(found or [])
    if not all(isinstance(one, str) for one in values):
        raise TypeError("the values of a completion are texts")
    result: dict[str, Any] = {"values": values[:_VALUES]}
    if total is None and len(values) > _VALUES:
        total = len(values)
    if total is not None:
        result["total"] = total
        more = total > len(result["values"]) if more is None else more
    if more is not None:
        result["hasMore"] = bool(more)
    return result


async def set_level(exchange: Exchange) -> dict[str, Any]:
    """Log to the client from a severity on."""
    declared(exchange, "logging")
    level = params_of(exchange).text("level")
    if level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"Invalid log level (known: {', '.join(LEVELS)})")
    exchange.state.level = level
    return {}
