"""How a process ended: code, signal or unknown, and what a person reads of it."""

from __future__ import annotations

import signal

import pytest

from mcpclient.ground.exits import Exit


@pytest.mark.parametrize(
    ("exit", "clean", "shown"),
    [
        (Exit(code=0), True, "exit code 0"),
        (Exit(code=7), False, "exit code 7"),
        (Exit(signal=signal.SIGKILL), False, "killed by SIGKILL"),
        (Exit(signal=15), False, "killed by SIGTERM"),
        (Exit(signal=62), False, "killed by signal 62"),
        (Exit(), False, "exit status unknown"),
        (Exit(words="the server closed the connection"), False, "the server closed the connection"),
    ],
)
def test_only_code_0_is_clean_and_each_end_has_its_words(
    exit: Exit, clean: bool, shown: str
) -> None:
    assert exit.clean is clean
    assert str(exit) == shown


def test_an_exit_is_a_value() -> None:
    assert Exit(code=3) == Exit(code=3) != Exit(signal=3)
    assert len({Exit(code=3), Exit(code=3)}) == 1
    with pytest.raises(AttributeError):
        Exit(code=3).code = 4  # type: ignore[misc]  # frozen: that is the point
