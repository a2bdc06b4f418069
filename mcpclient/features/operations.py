"""The tasks of one server: which calls become one, and who is asked about which.

It knows no version: the era tells whether the client or the server decides, and how.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import anyio

from mcpclient.features import catalog
from mcpclient.features.asks import Refuse
from mcpclient.ground.errors import (
    CallTimedOut,
    InputRefused,
    LocalProtocolError,
    McpClientError,
    ReplyError,
    UseAfterClose,
    timed_out,
)
from mcpclient.ground.text import printable
from mcpclient.protocol import methods
from mcpclient.protocol.eras import NoTasks, OtherResult
from mcpclient.protocol.events import Answer
from mcpclient.protocol.extensions import TASK
from mcpclient.protocol.types import Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.features.asks import Asks
    from mcpclient.features.course import Course
    from mcpclient.features.operation import Operation
    from mcpclient.features.subscriptions import Subscriptions
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.eras.tasks import Task, Tasks
