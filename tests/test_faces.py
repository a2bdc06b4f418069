"""The faces offer what the async one offers, by the same names with the same parameters."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

import mcpclient
from mcpclient import blocking, handles
from mcpclient.manager.verbs import Verbs

# What a server tells its manager and is told by it; nobody else calls these.
INNER = {
    *("begin", "halt", "rerun", "ended", "roots_changed", "retire", "want_lists"),
    *("born", "went_up", "went_down", "moved", "recorded", "noticed", "asked", "unasked", "lapsed"),
}
# What only a face has, since it has no `async for` to offer or no loop to deliver by itself.
OWN = {
    "blocking.Subscription": {"next"},
    "handles.Manager": {"set_wakeup"},
    "handles.Subscription": {"open", "next", "close"},
    "handles.Operation": {"changes"},
}
# A subscription is followed by `with` and `for`; what feeds it stays inside.
ATTRIBUTES = {"cache", "spec"}  # which an instance has in the async face
FED = {"put", "end", "wake", "checked_by"}
KINDS = ("Manager", "Server", "Operation", "Subscription")


def names(of: type[Any]) -> set[str]:
    """Return the public names of a class."""
    return {name for name in dir(of) if not name.startswith("_")}


def parameters(member: Any) -> list[tuple[str, Any, Any]]:
    """Return a function's parameters: name, kind, default."""
    found = inspect.signature(member).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


def pairs() -> list[Any]:
    """Return each member of the async face with the same one of another."""
    found = []
    for face in (blocking, handles):
        for kind in KINDS:
            original, other = getattr(mcpclient, kind), getattr(face, kind)
            for name in sorted(names(original) - INNER - FED):
                label = f"{face.__name__.partition('.')[2]}.{kind}.{name}"
                found.append(pytest.param(original, other, name, id=label))
    return found


@pytest.mark.parametrize(("original", "face", "name"), pairs())
def test_each_name_of_the_async_face_is_one_of_the_others_with_the_same_parameters(
    original: type[Any], face: type[Any], name: str
) -> None:
    assert hasattr(face, name)
    mine, theirs = (inspect.getattr_static(one, name) for one in (face, original))
    if isinstance(theirs, property):
        assert isinstance(mine, property)
        return
    if not callable(getattr(original, name)):
        return
    mine, theirs = getattr(face, name), getattr(original, name)
    if face is handles.Manager and name == "tick":  # within a host's budget
        assert [one[:2] for one in parameters(mine)] == [one[:2] for one in parameters(theirs)]
        return
    assert parameters(mine) == parameters(theirs)
    assert not inspect.iscoroutinefunction(mine)
    returned = str(inspect.signature(theirs).return_annotation)
    if inspect.iscoroutinefunction(theirs):
        returned = (
            f"Handle[{returned}]" if face.__module__.startswith("mcpclient.han") else returned
        )
        assert str(inspect.signature(mine).return_annotation) == returned


@pytest.mark.parametrize("face", [blocking, handles], ids=["blocking", "handles"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_face_adds_only_what_its_people_need(face: Any, kind: str) -> None:
    more = names(getattr(face, kind)) - names(getattr(mcpclient, kind)) - ATTRIBUTES
    assert more == OWN.get(f"{face.__name__.partition('.')[2]}.{kind}", set())


def test_the_verbs_that_do_not_wait_for_a_server_are_all_the_verbs() -> None:
    for face in (blocking, handles):
        verbs = import_module(f"{face.__name__}.verbs").Verbs
        assert names(verbs) == names(Verbs)


def test_managers_take_the_same_options() -> None:
    options = parameters(mcpclient.Manager.__init__)
    assert parameters(blocking.Manager.__init__) == options
    # There is nothing to choose: all waits for the host's tick.
    assert parameters(handles.Manager.__init__) == [one for one in options if one[0] != "dispatch"]


@pytest.mark.parametrize("face", [blocking, handles], ids=["blocking", "handles"])
def test_everything_public_says_what_it_is_for(face: Any) -> None:
    assert face.__all__ == sorted(face.__all__)
    for kind in face.__all__:
        for name in names(getattr(face, kind)):
            member = inspect.getattr_static(getattr(face, kind), name)
            if callable(member) or isinstance(member, property | classmethod):
                assert inspect.getdoc(getattr(getattr(face, kind), name)), f"{kind}.{name}"


def test_a_handle_has_the_words_of_a_future() -> None:
    from concurrent.futures import Future

    words = {"done", "result", "exception", "cancel", "cancelled", "add_done_callback"}
    for word in words:
        mine = [one[0] for one in parameters(getattr(handles.Handle, word))]
        assert mine == [
            {"fn": "callback"}.get(one[0], one[0]) for one in parameters(getattr(Future, word))
        ]
