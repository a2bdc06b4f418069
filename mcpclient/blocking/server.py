"""One named server: its verbs and its life, for threads that wait, and its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from mcpclient.blocking.verbs import Verbs
from mcpclient.engine.face import ServerFace
from mcpclient.engine.facts import documented_as
from mcpclient.manager.server import Server as Original

if TYPE_CHECKING:
    from mcpclient.blocking.manager import Manager
    from mcpclient.connection.caller import Timeout


@documented_as(Original)
class Server(ServerFace, Verbs):
    """One server of a manager, over all the lives of its process; made by the manager."""

    def __init__(self, home: Manager, name: str) -> None:
        ServerFace.__init__(self, home, name)
        Verbs.__init__(self, home, name, self._find)

    def start(self, *, timeout: Timeout = UNSET) -> None:
        self._home._portal.run(lambda: self._find().start(timeout=timeout))

    def wait_ready(self, *, timeout: Timeout = UNSET) -> None:
        self._home._portal.run(lambda: self._find().wait_ready(timeout=timeout))

    def stop(self) -> None:
        self._home._portal.run(lambda: self._find().stop())

    def restart(self, *, timeout: Timeout = UNSET) -> None:
        self._home._portal.run(lambda: self._find().restart(timeout=timeout))

    @property
    def no_wait(self) -> Verbs:
        return Verbs(self._home, self.name, lambda: self._find().no_wait)
