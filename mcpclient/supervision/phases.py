"""The phases of a server, over all its lives. Drawn in ARCHITECTURE.md."""

from __future__ import annotations

from mcpclient.ground.table import Table

PHASE = Table(
    "server",
    {
        "idle": {"start": "starting", "stop": "idle"},
        "starting": {
            "spawned": "opening",
            "retry": "waiting",
            "give_up": "failed",
            "stop": "stopping",
        },
        "opening": {
            # Once more, if it died of the probe.
            "spawned": "opening",
            "opened": "up",
            "retry": "waiting",
            "give_up": "failed",
            "stop": "stopping",
        },
        "up": {
            "retry": "waiting",
            "give_up": "failed",
            "rest": "idle",
            # Nobody used it for a while, or it is to be run in another way.
            "pause": "stopping",
            "stop": "stopping",
        },
        "waiting": {"start": "starting", "stop": "stopping"},
        "stopping": {"stopped": "idle", "stop": "stopping"},
        "failed": {"start": "starting", "stop": "idle"},
    },
)
