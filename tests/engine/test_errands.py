"""What the main thread does for others while it waits for a call of the blocking manager."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcpclient.blocking import Manager
from mcpclient.engine.errands import Errands
from tests.conftest import spec

MAIN = threading.main_thread().ident


class Noted:
    """An errand that notes what became of it."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.raises = raises
        self.fate: list[tuple[str, int]] = []
        self.over = threading.Event()

    def do(self) -> None:
        """Note it."""
        self._note("done")
        if self.raises is not None:
            raise self.raises

    def drop(self) -> None:
        """Note it."""
        self._note("dropped")

    def _note(self, fate: str) -> None:
        self.fate.append((fate, threading.get_ident()))
        self.over.set()


@pytest.fixture
def manager() -> Iterator[Manager]:
    """A manager whose server asks; what it asks becomes an errand."""
    errands = Errands()
    given: list[Noted] = []

    def elicit(server: Any, params: Any) -> dict[str, Any]:
        errand = given.pop(0)
        taken = errands.give(errand)
        if taken:
            errand.over.wait(30)
        return {"action": "accept", "content": {"name": f"taken={taken}"}}

    with Manager({"one": spec("asks_handshake")}, on_elicit=elicit) as opened:
        opened._portal.errands = errands
        opened.given = given  # type: ignore[attr-defined]  # for the tests
        yield opened


def read(manager: Manager, *errands: Noted, **options: Any) -> str:
    """Read what the server gives once its questions are answered."""
    manager.given[:] = errands  # type: ignore[attr-defined]  # see the fixture
    return manager["one"].read_resource("test://asking", cache="bypass", **options).text


def test_an_errand_is_done_on_the_main_thread_while_it_waits(manager: Manager) -> None:
    errand = Noted()
    assert "taken=True" in read(manager, errand)
    assert errand.fate == [("done", MAIN)]
    errand = Noted()
    assert "taken=True" in read(manager, errand, on_progress=print)
    assert errand.fate == [("done", MAIN)]


@pytest.mark.parametrize("on_progress", [None, print])
def test_what_an_errand_raises_ends_the_wait_and_drops_those_behind_it(
    manager: Manager, on_progress: Any
) -> None:
    first, second = Noted(raises=KeyboardInterrupt()), Noted()
    manager["one"].start()
    errands = manager._portal.errands
    assert errands is not None

    def both() -> None:
        first.over = second.over  # so that the second is there before the first was done
        assert errands.give(second)

    first.do = lambda: (both(), Noted.do(first))  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        read(manager, first, on_progress=on_progress)
    assert first.fate == [("done", MAIN)]
    assert second.fate == [("dropped", MAIN)]
    assert not errands.give(Noted())


def test_nothing_is_taken_by_another_thread_nor_while_one_stays_aloof(manager: Manager) -> None:
    found: list[str] = []
    other = threading.Thread(target=lambda: found.append(read(manager, Noted())))
    other.start()
    other.join()
    assert "taken=False" in found[0]
    assert manager._portal.errands is not None
    with manager._portal.errands.aloof():
        assert "taken=False" in read(manager, Noted())
    assert "taken=True" in read(manager, Noted())
