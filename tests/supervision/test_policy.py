"""When to restart: a table of what is decided, and rows of deaths that no pause can hide."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from mcpclient.ground.exits import Exit
from mcpclient.supervision.incidents import Incident
from mcpclient.supervision.policy import Decision, GiveUp, Rest, Restart, RestartPolicy, decide

STEADY = RestartPolicy(jitter=0.0)


def death(
    at: float = 0.0,
    uptime: float = 1.0,
    exit: Exit | None = Exit(code=1),  # noqa: B008 - frozen
    phase: str = "up",
) -> Incident:
    return Incident(generation=1, at=at, phase=phase, uptime=uptime, exit=exit)


def loop(
    policy: RestartPolicy,
    uptimes: Sequence[float],
    exit: Exit | None = Exit(code=1),  # noqa: B008
) -> list[Decision]:
    """Live through some lives, pausing as decided; return the decisions, up to a last one."""
    now, history, decisions = 1000.0, [], []
    for uptime in uptimes:
        now += uptime
        history.append(death(now, uptime, exit))
        decision = decide(policy, history, now, 0.0)
        decisions.append(decision)
        if not isinstance(decision, Restart):
            break
        now += decision.delay
    return decisions


# -- one death -----------------------------------------------------------------------------

WHENS = ("on_crash", "always", "never")
EXITS = {
    "code 0": Exit(code=0),
    "code 1": Exit(code=1),
    "code 255": Exit(code=255),
    "SIGKILL": Exit(signal=9),
    "SIGTERM": Exit(signal=15),
    "unknown": Exit(),
    "no process": None,
}
PHASES = ("starting", "opening", "up")
UPTIMES = (0.0, 1.0, 29.9, 30.0, 1e6)


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("exit", EXITS)
def test_what_is_decided_about_a_first_death(when: str, exit: str) -> None:
    policy = RestartPolicy(when=when, jitter=0.0)
    for phase, uptime in itertools.product(PHASES, UPTIMES):
        decision = decide(policy, [death(0.0, uptime, EXITS[exit], phase)], 0.0, 0.0)
        ended_well = phase == "up" and exit == "code 0"
        if when == "always":
            expected: Decision = Restart(0.5)
        elif ended_well:
            expected = Rest()
        elif when == "on_crash":
            expected = Restart(0.5)
        else:
            expected = GiveUp("it ended and is not to be restarted (RestartPolicy.when is 'never')")
        assert decision == expected, (phase, uptime)


# -- the pause -----------------------------------------------------------------------------


def test_the_pause_doubles_up_to_the_cap() -> None:
    policy = RestartPolicy(first=0.5, cap=6.0, jitter=0.0, burst=8, within=0.0)
    decisions = loop(policy, [1.0] * 8)
    assert decisions == [Restart(d) for d in (0.5, 1.0, 2.0, 4.0, 6.0, 6.0, 6.0, 6.0)]


def test_a_very_long_row_has_a_pause_too() -> None:
    policy = RestartPolicy(first=0.5, cap=30.0, jitter=0.0, burst=10_000, within=0.0)
    history = [death(float(number), 0.0) for number in range(5000)]
    assert decide(policy, history, 5000.0, 0.0) == Restart(30.0)


@pytest.mark.parametrize("jitter", [0.0, 0.25, 1.0])
def test_chance_moves_the_pause_by_its_part_and_no_more(jitter: float) -> None:
    policy = RestartPolicy(first=2.0, jitter=jitter)
    pauses = []
    for chance in (-1.0, -0.5, 0.0, 0.5, 1.0):
        decision = decide(policy, [death()], 0.0, chance)
        assert isinstance(decision, Restart)
        pauses.append(decision.delay)
    assert pauses == [2.0 * (1 + jitter * chance) for chance in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    assert min(pauses) >= 0.0


def test_no_pause_at_all_may_be_wanted() -> None:
    policy = RestartPolicy(first=0.0, jitter=1.0, burst=3, within=0.0)
    assert loop(policy, [0.0] * 3) == [Restart(0.0)] * 3


# -- rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("burst", [1, 2, 5])
def test_after_so_many_restarts_in_a_row_it_gives_up(burst: int) -> None:
    policy = RestartPolicy(burst=burst, jitter=0.0)
    decisions = loop(policy, [0.1] * 20)
    assert [type(one) for one in decisions] == [Restart] * burst + [GiveUp]
    assert decisions[-1] == GiveUp(f"it ended {burst + 1} times in a row")


def test_without_any_restart_the_first_death_is_the_last() -> None:
    assert loop(RestartPolicy(burst=0), [0.1]) == [GiveUp("it ended once")]


def test_slow_back_off_cannot_hide_a_loop() -> None:
    # Each pause is far longer than the span in which deaths are counted.
    policy = RestartPolicy(first=100.0, cap=100.0, within=10.0, burst=5, jitter=0.0)
    decisions = loop(policy, [29.0] * 20)
    assert [type(one) for one in decisions] == [Restart] * 5 + [GiveUp]


def test_a_sustained_uptime_ends_the_row() -> None:
    policy = RestartPolicy(burst=3, within=0.0, reset_after=30.0, jitter=0.0)
    decisions = loop(policy, [1.0, 1.0, 1.0, 30.0, 1.0, 1.0, 1.0])
    assert [one.delay if isinstance(one, Restart) else one for one in decisions] == [
        0.5,
        1.0,
        2.0,
        0.5,  # the life that was sustained begins the row anew
        1.0,
        2.0,
        GiveUp("it ended 4 times in a row"),
    ]


def test_an_uptime_just_too_short_does_not_end_the_row() -> None:
    policy = RestartPolicy(burst=3, within=0.0, reset_after=30.0, jitter=0.0)
    assert isinstance(loop(policy, [29.999] * 10)[-1], GiveUp)
    assert len(loop(policy, [30.0] * 100)) == 100


def test_many_deaths_within_a_span_end_it_though_each_life_was_sustained() -> None:
    policy = RestartPolicy(
        burst=3, within=60.0, reset_after=5.0, first=0.0, jitter=0.0, when="on_crash"
    )
    decisions = loop(policy, [10.0] * 20)
    assert [type(one) for one in decisions] == [Restart] * 3 + [GiveUp]
    assert decisions[-1] == GiveUp("it ended 4 times within 60 s")
    assert len(loop(policy, [21.0] * 50)) == 50, "spread out, it may go on for ever"


def test_a_death_counts_as_long_as_the_span_and_no_longer() -> None:
    policy = RestartPolicy(burst=1, within=60.0, reset_after=5.0, jitter=0.0)
    old, new = death(0.0, 10.0), death(60.0, 10.0)
    assert decide(policy, [old, new], 60.0, 0.0) == GiveUp("it ended 2 times within 60 s")
    new = death(60.001, 10.0)
    assert decide(policy, [old, new], 60.001, 0.0) == Restart(0.5)


def test_deaths_before_being_up_are_never_sustained() -> None:
    policy = RestartPolicy(burst=2, within=0.0, reset_after=0.0, jitter=0.0)
    # Nothing is asked of an uptime here, so every life is sustained: the row never grows.
    assert len(loop(policy, [0.0] * 50)) == 50
    policy = RestartPolicy(burst=2, within=0.0, reset_after=0.001, jitter=0.0)
    assert isinstance(loop(policy, [0.0] * 50)[-1], GiveUp)


# -- good ends among the bad ---------------------------------------------------------------


def test_good_ends_are_not_held_against_a_server() -> None:
    ends = [death(float(number), 0.1, Exit(code=0)) for number in range(10)]
    crash = death(11.0, 0.1)
    assert decide(STEADY, [*ends, crash], 11.0, 0.0) == Restart(0.5)
    assert decide(STEADY, [*ends, crash, *ends], 12.0, 0.0) == Rest()


def test_a_good_end_does_not_hide_the_crashes_around_it() -> None:
    policy = RestartPolicy(burst=2, jitter=0.0)
    history = [death(1.0), death(2.0), death(3.0, 0.1, Exit(code=0)), death(4.0)]
    assert decide(policy, history, 4.0, 0.0) == GiveUp("it ended 3 times in a row")


def test_a_long_life_with_a_good_end_ends_the_row() -> None:
    policy = RestartPolicy(burst=2, within=0.0, jitter=0.0)
    history = [death(1.0), death(2.0), death(100.0, 90.0, Exit(code=0)), death(101.0)]
    assert decide(policy, history, 101.0, 0.0) == Restart(0.5)


def test_for_a_server_that_must_always_run_a_good_end_is_one_more_death() -> None:
    policy = RestartPolicy(when="always", burst=3, jitter=0.0)
    decisions = loop(policy, [0.1] * 20, Exit(code=0))
    assert [type(one) for one in decisions] == [Restart] * 3 + [GiveUp]


# -- what may be said ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"when": "sometimes"}, "RestartPolicy.when must be one of on_crash, always, never"),
        ({"jitter": 1.1}, "RestartPolicy.jitter must be from 0 to 1, not 1.1"),
        ({"jitter": -0.1}, "RestartPolicy.jitter must be from 0 to 1"),
        ({"burst": -1}, "RestartPolicy.burst must not be negative, not -1"),
        ({"within": -1.0}, "RestartPolicy.within must not be negative"),
        ({"first": -0.1}, "RestartPolicy.first must not be negative"),
        ({"cap": float("nan")}, "RestartPolicy.cap must not be negative, not nan"),
        ({"reset_after": -1}, "RestartPolicy.reset_after must not be negative"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        RestartPolicy(**options)  # type: ignore[arg-type]
    assert problem in str(caught.value)
