"""https: whose certificates are trusted, by what, and what is said where they are not."""

from __future__ import annotations

import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from anyio.abc import SocketListener, SocketStream
from anyio.streams.tls import TLSListener

from mcpclient import Manager, OpeningFailed, Server
from tests.conftest import eventually
from tests.http.helpers import web
from tests.http.peer import Handler, Peer, serving, stateless
from tests.remote.nginx import nginx
from tests.remote.programs import program, sdk

NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """A private certificate authority."""
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """The authority, trusted as a person would have it trusted."""
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return authority


async def listening() -> tuple[SocketListener, int]:
    bare = socket.create_server(("127.0.0.1", 0))
    bare.setblocking(False)
    return await SocketListener.from_socket(bare), int(bare.getsockname()[1])


@asynccontextmanager
async def secured(
    handler: Handler, certificate: trustme.LeafCert, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Peer, str]]:
    """Serve by https, and give the peer and its url."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    listener, port = await listening()
    peer = Peer(port, handler)
    secure = TLSListener(listener, context, standard_compatible=False)
    async with secure, anyio.create_task_group() as group:
        group.start_soon(secure.serve, peer.serve)
        yield peer, f"https://{host}:{port}/mcp"
        group.cancel_scope.cancel()


async def refused(url: str) -> OpeningFailed:
    """Return how a server is given up, after one attempt."""
    async with Manager() as manager:
        server = await manager.add("web", web(url))
        with pytest.raises(OpeningFailed) as caught:
            await server.invoke_tool("echo", {})
        assert server.state == "failed"
        assert len(server.incidents) == 1
        return caught.value


async def test_a_private_authority_is_trusted_by_its_file(trusted: trustme.CA) -> None:
    certificate = trusted.issue_cert("127.0.0.1")
    async with secured(stateless, certificate) as (peer, url), Manager() as manager:
        server = await manager.add("web", web(url))
        assert (await server.invoke_tool("echo", {"a": 1})).text == '{"a": 1}'
        big = "x" * 300_000
        assert big in (await server.invoke_tool("echo", {"a": big})).text
        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(server.invoke_tool, "echo", {"n": number})
        assert peer.connections < 50
        assert peer.requests[0].headers["host"] == f"127.0.0.1:{peer.port}"


async def test_an_authority_that_is_not_trusted_is_named_with_the_next_step(
    authority: trustme.CA,
) -> None:
    certificate = authority.issue_cert("127.0.0.1")
    async with secured(stateless, certificate) as (peer, url):
        text = str(await refused(url))
        assert "its certificate is not trusted (unable to get local issuer certificate)" in text
        assert "name the authority's file in SSL_CERT_FILE" in text
        assert peer.requests == []


async def test_a_certificate_of_its_own_is_not_trusted(authority: trustme.CA) -> None:
    """As many make one at home: the authority's own certificate serves."""
    certificate = authority.issue_cert("127.0.0.1")
    async with secured(stateless, certificate) as (peer, url):
        text = str(await refused(url))
        assert 'server "web"' in text
        assert peer.requests == []


async def test_a_certificate_of_another_host_is_refused(trusted: trustme.CA) -> None:
    certificate = trusted.issue_cert("elsewhere.example", "10.1.2.3")
    async with secured(stateless, certificate) as (peer, url):
        text = str(await refused(url))
        assert "its certificate is not for this host" in text
        assert "127.0.0.1" in text
        assert "SSL_CERT_FILE" not in text
        assert peer.requests == []


async def test_a_certificate_that_has_expired_is_refused(trusted: trustme.CA) -> None:
    then = NOW - datetime.timedelta(days=2)
    certificate = trusted.issue_cert("127.0.0.1", not_after=then)
    async with secured(stateless, certificate) as (peer, url):
        text = str(await refused(url))
        assert "its certificate has expired" in text
        assert "SSL_CERT_FILE" not in text
        assert peer.requests == []


async def test_a_file_that_is_no_certificate_is_told_of(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.pem").write_text("nothing in it\n")
    for name in ("empty.pem", "none.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        async with secured(stateless, authority.issue_cert("127.0.0.1")) as (_, url):
            text = str(await refused(url))
            assert "SSL_CERT_FILE" in text


async def test_a_server_without_tls_behind_an_https_url_is_waited_for_with_a_reason() -> None:
    async def plain(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    listener, port = await listening()
    async with listener, anyio.create_task_group() as group, Manager() as manager:
        group.start_soon(listener.serve, plain)
        server = await manager.add("web", web(f"https://127.0.0.1:{port}/mcp"))
        server.begin()
        await eventually(lambda: server.incidents)
        assert "it does not speak TLS; is it an http url?" in str(server.incidents[0])
        assert server.state != "failed"
        await server.stop()
        group.cancel_scope.cancel()


async def test_a_stop_does_not_wait_for_a_handshake_that_hangs() -> None:
    async with serving(stateless) as peer, Manager() as manager:
        server = await manager.add("web", web(peer.url.replace("http:", "https:")))
        server.begin()
        await eventually(lambda: peer.open)
        await server.stop()
        await eventually(lambda: peer.open == 0)
        assert server.state == "idle"


async def test_a_server_with_tls_behind_an_http_url_is_told_of(authority: trustme.CA) -> None:
    certificate = authority.issue_cert("127.0.0.1")
    async with secured(stateless, certificate) as (_, url), Manager() as manager:
        server = await manager.add("web", web(url.replace("https:", "http:")))
        server.begin()
        await eventually(lambda: len(server.incidents) > 0)
        assert server.state != "up"
        assert str(server.incidents[0])


# -- real ones -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(
    authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Give urls of the SDK's server: with TLS of its own, and behind nginx with TLS."""
    folder = tmp_path_factory.mktemp("tls")
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = folder / "chain.pem", folder / "key.pem"
    certificate.private_key_pem.write_to_path(str(key))
    for part in certificate.cert_chain_pems:
        part.write_to_path(str(chain), append=True)
    direct, plain = sdk("--tls", chain, key), sdk()
    if direct is None or plain is None:
        pytest.skip("the official SDK is not set up (`make setup`)")
    with ExitStack() as stack:
        own = stack.enter_context(program(direct)).origin
        to = stack.enter_context(program(plain)).origin
        more = f"ssl_certificate {chain}; ssl_certificate_key {key};"
        site = {"to": to, "rules": "", "how": " ssl http2", "more": more}
        front = stack.enter_context(nginx({"tls": site}))
        yield {"uvicorn": own, "nginx": front.origins["tls"]}


async def told(server: Server) -> list[Any]:
    got: list[Any] = []
    await server.invoke_tool(
        "trigger-long-running-operation",
        {"duration": 0.2, "steps": 4},
        on_progress=lambda *facts: got.append(facts),
    )
    return got


@pytest.mark.parametrize("name", ["uvicorn", "nginx"])
async def test_a_real_server_behind_tls_is_used_as_any_other(
    programs: dict[str, str], trusted: trustme.CA, name: str
) -> None:
    async with Manager() as manager:
        server = await manager.add("sdk", web(f"{programs[name]}/mcp"))
        assert await told(server) == [(step, 4, None) for step in (1, 2, 3, 4)]
        assert len(await server.list_tools()) > 7
        assert server.era == "stateless"
        assert server.incidents == []
