"""One named server: its verbs and its life as handles, and its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from mcpclient.engine.face import ServerFace
from mcpclient.engine.facts import documented_as
from mcpclient.handles.verbs import Verbs
from mcpclient.manager.server import Server as Original

if TYPE_CHECKING:
    from mcpclient.connection.caller import Timeout
    from mcpclient.handles.handle import Handle
    from mcpclient.handles.manager import Manager


@documented_as(Original)
class Server(ServerFace, Verbs):
    """One server of a manager, over all the lives of its process; made by the manager."""

    def __init__(self, home: Manager, name: str) -> None:
        ServerFace.__init__(self, home, name)
        Verbs.__init__(self, home, name, self._find)

    def start(self, *, timeout: Timeout = UNSET) -> Handle[None]:
        return self._home._begin("start", lambda: self._find().start(timeout=timeout), self.name)

    def wait_ready(self, *, timeout: Timeout = UNSET) -> Handle[None]:
        return self._home._begin(
            "wait_ready", lambda: self._find().wait_ready(timeout=timeout), self.name
        )

    def stop(self) -> Handle[None]:
        return self._home._begin("stop", lambda: self._find().stop(), self.name)

    def restart(self, *, timeout: Timeout = UNSET) -> Handle[None]:
        return self._home._begin(
            "restart", lambda: self._find().restart(timeout=timeout), self.name
        )

    @property
    def no_wait(self) -> Verbs:
        return Verbs(self._home, self.name, lambda: self._find().no_wait)
