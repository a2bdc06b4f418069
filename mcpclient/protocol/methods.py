"""The protocol's method names and what is known of each. Knows no server.

https://modelcontextprotocol.io/specification/2026-07-28/schema
"""

from __future__ import annotations

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
DISCOVER = "server/discover"
PING = "ping"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

TOOLS_LIST = "tools/list"
TOOLS_CALL = "tools/call"
RESOURCES_LIST = "resources/list"
TEMPLATES_LIST = "resources/templates/list"
RESOURCES_READ = "resources/read"
PROMPTS_LIST = "prompts/list"
PROMPTS_GET = "prompts/get"
TASKS_GET = "tasks/get"
TASKS_RESULT = "tasks/result"
TASKS_LIST = "tasks/list"
TASKS_CANCEL = "tasks/cancel"
TASKS_UPDATE = "tasks/update"
COMPLETE = "completion/complete"
SET_LEVEL = "logging/setLevel"

SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"
ROOTS_CHANGED = "notifications/roots/list_changed"
# Of one task's status: in the handshake era, and of the extension.
TASK_STATUS = "notifications/tasks/status"
TASKS_NOTICE = "notifications/tasks"

# What a server must have declared for a list, or a completion, to be worth asking for.
DECLARED_BY = {
    TOOLS_LIST: "tools",
    RESOURCES_LIST: "resources",
    TEMPLATES_LIST: "resources",
    PROMPTS_LIST: "prompts",
    COMPLETE: "completions",
}

# Which lists a notice makes stale (CACHE-08).
CHANGED_BY = {
    TOOLS_CHANGED: (TOOLS_LIST,),
    PROMPTS_CHANGED: (PROMPTS_LIST,),
    RESOURCES_CHANGED: (RESOURCES_LIST, TEMPLATES_LIST),
}

# The only methods whose result may ask for another round (RES-03).
MAY_ASK_BACK = frozenset({TOOLS_CALL, PROMPTS_GET, RESOURCES_READ})
# The only methods whose result may be a task; there may be more one day (TSK-03, TSK-24).
MAY_BE_TASKS = frozenset({TOOLS_CALL})
# What is asked about a task; a result of these is told by its status (TSK-21).
ABOUT_TASKS = frozenset({TASKS_GET, TASKS_UPDATE, TASKS_CANCEL})

# JSON-RPC's own codes, and the three that only a stateless server answers (section 1.4 of the
# page on versioning): these prove the era, all others prove nothing.
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
# Of 2025-11-25: a person must visit pages first.
PAGES_FIRST = -32042
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
STATELESS_ONLY = frozenset({HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION})
