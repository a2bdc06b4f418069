"""When to restart, as arithmetic on recorded deaths. Never waits, never looks at a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpclient.supervision.incidents import Incident

_WHEN = ("on_crash", "always", "never")


class RestartPolicy(Struct, frozen=True, kw_only=True, gc=False):
    """Whether, how often and how soon a server that ended is started again. Times in seconds.

    Attributes:
        when: ``on_crash``: unless it was up and exited with code 0. ``always``: whatever its
            exit. ``never``: not at all. A server that is to be started for a call is started
            whatever this says, unless it is ``failed``.
        burst: After so many restarts in a row, none of them sustained, it is ``failed``; None:
            never, which servers behind a URL have by default.
        within: More than ``burst`` deaths in such a span make it ``failed`` too, sustained or
            not.
        first: The pause before the first restart in a row; it doubles each time.
        cap: The longest pause.
        jitter: The part of a pause that is left to chance, 0 to 1, so that many servers that died
            together do not start together.
        reset_after: An uptime of so much is sustained: the row ends.
    """

    when: str = "on_crash"
    burst: int | None = 5
    within: float = 60.0
    first: float = 0.5
    cap: float = 30.0
    jitter: float = 0.25
    reset_after: float = 30.0

    def __post_init__(self) -> None:
        if self.when not in _WHEN:
            raise ValueError(
                f"RestartPolicy.when must be one of {', '.join(_WHEN)}, not {self.when!r}"
            )
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"RestartPolicy.jitter must be from 0 to 1, not {self.jitter!r}")
        for name in ("burst", "within", "first", "cap", "reset_after"):
            value = getattr(self, name)
            if not (value is None and name == "burst") and not value >= 0:
                raise ValueError(f"RestartPolicy.{name} must not be negative, not {value!r}")


# For servers that others run: a new version is rolled out, a network is away for a night. They cost
# nothing while they are waited for.
PATIENT = RestartPolicy(burst=None)


class Restart(Struct, frozen=True, gc=False):
    """A decision: start again after a pause of ``delay`` seconds."""

    delay: float


class Rest(Struct, frozen=True, gc=False):
    """A decision: it ended well; start again when it is needed."""


class GiveUp(Struct, frozen=True, gc=False):
    """A decision: no more, until somebody says ``start()``."""

    problem: str


Decision = Restart | Rest | GiveUp


def decide(
    policy: RestartPolicy, history: Sequence[Incident], now: float, jitter: float
) -> Decision:
    """Return what to do after the newest death.

    Args:
        policy: The rules.
        history: The deaths, oldest first; the last is the one to decide about. At least
            ``burst + 1`` of them, and two, must be remembered.
        now: The time on the clock of the incidents.
        jitter: A number from -1 to 1, from chance.
    """
    if not _counts(policy, history[-1]):
        return Rest()
    if _expired(policy, history):
        return Restart(0.0)
    if policy.when == "never":
        return GiveUp("it ended and is not to be restarted (RestartPolicy.when is 'never')")
    row = _row(policy, history)
    if policy.burst is not None:
        if row > policy.burst:
            return GiveUp(f"it ended {row} times in a row" if row > 1 else "it ended once")
        recent = sum(_counts(policy, one) for one in history if now - one.at <= policy.within)
        if recent > policy.burst:
            return GiveUp(f"it ended {recent} times within {policy.within:g} s")
    # The exponent is bounded before the power is: 2 ** 5000 is no float.
    pause = min(policy.cap, policy.first * 2.0 ** min(row - 1, 60))
    return Restart(pause * (1 + policy.jitter * jitter))


def _counts(policy: RestartPolicy, death: Incident) -> bool:
    """Return whether a death is a failure: a good end is none, unless it is always to run."""
    good = death.phase == "up" and death.exit is not None and death.exit.clean
    return not good or policy.when == "always"


def _expired(policy: RestartPolicy, history: Sequence[Incident]) -> bool:
    """Return whether only a conversation ended, and not the second time in no time."""
    newest = history[-1]
    if newest.exit is None or not newest.exit.expired:
        return False
    before = history[-2] if len(history) > 1 else None
    return (
        before is None
        or before.exit is None
        or not before.exit.expired
        or newest.uptime >= policy.reset_after
    )


def _row(policy: RestartPolicy, history: Sequence[Incident]) -> int:
    """Count the deaths since the last sustained uptime, the one that ended it included."""
    row = 0
    for incident in reversed(history):
        row += _counts(policy, incident)
        if incident.uptime >= policy.reset_after:
            break
    return row
