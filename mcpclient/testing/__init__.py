"""Layer 8, for tests of what is built on mcpclient: servers that do what a test says.

A scripted server, a recorder, recordings served again, and a clock that one may turn. Nothing is
loaded before it is used: the pytest plugin is part of every run of whoever has the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpclient.testing.clock import Clock
    from mcpclient.testing.connecting import connect
    from mcpclient.testing.journal import PlayFault
    from mcpclient.testing.memory import in_memory
    from mcpclient.testing.recorder import Recorder
    from mcpclient.testing.recording import RecordingError
    from mcpclient.testing.replay import Replay
    from mcpclient.testing.script import Script, Step

__all__ = [
    "Clock",
    "PlayFault",
    "Recorder",
    "RecordingError",
    "Replay",
    "Script",
    "Step",
    "connect",
    "in_memory",
]

_HOMES = {
    "Clock": "clock",
    "PlayFault": "journal",
    "Recorder": "recorder",
    "RecordingError": "recording",
    "Replay": "replay",
    "Script": "script",
    "Step": "script",
    "connect": "connecting",
    "in_memory": "memory",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
