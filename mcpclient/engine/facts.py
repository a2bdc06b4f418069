"""What a face shows of a server without asking anybody: the present facts, from any thread.

They are read as they are, across threads: each is true of some moment just past.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mcpclient.manager.server import Server
from mcpclient.manager.status import ServerStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.manager.spec import ServerSpec
    from mcpclient.supervision.incidents import Incident

C = TypeVar("C", bound=type[Any])


def documented_as(original: type[Any]) -> Callable[[C], C]:
    """Give those public members of a class that say nothing the words of the same ones there."""

    def fill_in(face: C) -> C:
        for name, member in vars(face).items():
            same = getattr(original, name, None)
            target = getattr(member, "__func__", member)  # of a class method
            if not name.startswith("_") and same is not None and target.__doc__ is None:
                target.__doc__ = same.__doc__
        return face

    return fill_in


class Unborn:
    """What is true of a server whose manager is not open yet."""

    era = protocol_version = instructions = pid = None
    state = "idle"
    generation = 0

    def __init__(self, name: str, spec: ServerSpec) -> None:
        self.name = name
        self.spec = spec
        self.info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.extensions: dict[str, Any] = {}
        self.incidents: list[Incident] = []

    def stderr_tail(self) -> str:
        return ""

    def status(self) -> ServerStatus:
        return ServerStatus(self.name)


@documented_as(Server)
class Facts:
    """The facts of one server."""

    @property
    def _present(self) -> Server | Unborn:
        """Who knows them."""
        raise NotImplementedError

    @property
    def state(self) -> str:
        return self._present.state

    @property
    def generation(self) -> int:
        return self._present.generation

    @property
    def pid(self) -> int | None:
        return self._present.pid

    @property
    def era(self) -> str | None:
        return self._present.era

    @property
    def protocol_version(self) -> str | None:
        return self._present.protocol_version

    @property
    def info(self) -> dict[str, Any]:
        return self._present.info

    @property
    def capabilities(self) -> dict[str, Any]:
        return self._present.capabilities

    @property
    def extensions(self) -> dict[str, Any]:
        return self._present.extensions

    @property
    def instructions(self) -> str | None:
        return self._present.instructions

    @property
    def incidents(self) -> list[Incident]:
        return self._present.incidents

    @property
    def spec(self) -> ServerSpec:
        """How the server is run."""
        return self._present.spec

    def stderr_tail(self) -> str:
        return self._present.stderr_tail()

    def status(self) -> ServerStatus:
        return self._present.status()
