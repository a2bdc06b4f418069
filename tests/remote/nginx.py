"""nginx before the servers of the tests: its own defaults, but for what a test says.

Run by whoever runs the tests, on loopback, from a folder of its own.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

MAIN = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 512; }}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {upstreams}
    {servers}
}}
"""
SERVER = (
    "server {{ listen 127.0.0.1:{port}{how}; {more} location / {{ proxy_pass {to}; {rules} }} }}"
)


class Nginx:
    """A running nginx.

    Attributes:
        origins: Where each of its servers listens, by name.
    """

    def __init__(self, folder: Path, sites: Mapping[str, Mapping[str, str]], extra: str) -> None:
        assert NGINX is not None
        self._folder = folder
        self.origins: dict[str, str] = {}
        servers = []
        for name, port in zip(sites, free_ports(len(sites)), strict=True):
            site = dict(sites[name])
            tls = "how" in site
            self.origins[name] = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
            servers.append(SERVER.format_map({"how": "", "more": "", **site, "port": port}))
        # Its workers would else be somebody who may not write into our folder.
        user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
        text = MAIN.format(
            folder=folder, user=user, upstreams=extra, servers="\n    ".join(servers)
        )
        (folder / "nginx.conf").write_text(text)
        self._process = subprocess.Popen(
            [NGINX, "-p", str(folder), "-e", str(folder / "error.log"), "-c", "nginx.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait()

    def requests(self) -> list[str]:
        """Return what was asked of it, line by line: method, path and status among others."""
        return (self._folder / "access.log").read_text().splitlines()

    def errors(self) -> str:
        """Return what it complained of."""
        return (self._folder / "error.log").read_text()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def _wait(self) -> None:
        """Wait until it listens everywhere."""
        end = time.monotonic() + 20
        for origin in self.origins.values():
            address = ("127.0.0.1", int(origin.rpartition(":")[2]))
            while True:
                try:
                    socket.create_connection(address, 5).close()
                    break
                except OSError:
                    if self._process.poll() is not None or time.monotonic() > end:
                        self._process.kill()
                        self._process.wait()
                        pytest.fail(f"nginx does not listen: {self.errors()[-2000:]}")
                    time.sleep(0.01)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on by now; nginx cannot choose its own."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def nginx(sites: Mapping[str, Mapping[str, str]], extra: str = "") -> Iterator[Nginx]:
    """Run nginx while the block runs.

    Args:
        sites: Its servers by name: ``to`` whom they pass what they get, by which ``rules``, and
            ``how`` they listen, with what ``more``, if not plainly.
        extra: What else stands among the servers.
    """
    if NGINX is None:
        pytest.skip("nginx is not installed (Debian: nginx-light)")
    with tempfile.TemporaryDirectory() as folder:
        one = Nginx(Path(folder), sites, extra)
        try:
            yield one
        finally:
            one.stop()
