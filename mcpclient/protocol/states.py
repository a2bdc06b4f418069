"""The states of a conversation. Drawn in ARCHITECTURE.md."""

from __future__ import annotations

from mcpclient.ground.table import Table

SESSION = Table(
    "session",
    {
        "fresh": {"probe": "probing", "initialize": "initializing", "close": "closed"},
        # After silence both openings are under way; the one that is answered wins.
        "probing": {
            "probe": "probing",
            "initialize": "initializing",
            "agree": "open",
            "close": "closed",
        },
        "initializing": {
            "initialize": "initializing",
            "probe": "probing",
            "agree": "open",
            "close": "closed",
        },
        "open": {"close": "closed"},
        "closed": {},
    },
)
