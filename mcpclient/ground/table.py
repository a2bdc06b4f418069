"""State machines as two-level tables. An illegal move changes nothing and says a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpclient.ground.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Table:
    """A named state machine: for each state, which event leads to which state.

    The pictures in ARCHITECTURE.md are drawn from ``moves``; states without moves are ends.
    """

    def __init__(self, name: str, moves: Mapping[str, Mapping[str, str]]) -> None:
        self.name = name
        self.moves = moves
        self.start = next(iter(moves))

    def after(self, state: str, event: str) -> str:
        """Return the state that follows.

        Raises:
            LocalProtocolError: The event is not possible in this state.
        """
        following = self.moves[state].get(event)
        if following is None:
            possible = ", ".join(self.moves[state]) or "nothing, it is the end"
            raise LocalProtocolError(
                f"{self.name}: {event!r} is not possible in state {state!r} (possible: {possible})"
            )
        return following

    def allows(self, state: str, event: str) -> bool:
        """Return whether the event is possible in this state."""
        return event in self.moves[state]
