"""Servers behind a URL: named by it alone, reached with a header, looked at by the doctor."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
import pytest

from tests.cli.driving import Ran, environment
from tests.http.peer import Exchange, serving, stateless

SECRET = "a-secret-word"


@pytest.fixture
def anyio_backend() -> str:
    """The command is a program of its own; the loop that serves it here matters to nobody."""
    return "asyncio"


async def guarded(exchange: Exchange) -> None:
    """Serve those who know the word."""
    if exchange.request.headers.get("authorization") == f"Bearer {SECRET}":
        await stateless(exchange)
    else:
        await exchange.send(401, www_authenticate='Bearer realm="here"')


async def ran(home: Path, *words: str) -> Ran:
    done = await anyio.run_process(
        [sys.executable, "-W", "error", "-m", "mcpclient", *words],
        cwd=home,
        env=environment(home),
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_a_url_after_the_dashes_is_asked_with_the_header_that_is_given(
    tmp_path: Path,
) -> None:
    async with serving(guarded) as peer:
        header = ("-H", f"Authorization: Bearer {SECRET}")
        told = await ran(tmp_path, "call", "echo", "x=1", *header, "--", f"{peer.origin}/mcp")
        assert told == Ran(0, '{"x": "1"}\n', "")
        refused = await ran(tmp_path, "tools", "--", f"{peer.origin}/mcp")
    assert (refused.code, refused.out) == (4, "")
    assert refused.err.endswith(
        ": HTTP 401 (Bearer realm=\"here\"); give them with -H 'Authorization: Bearer …', "
        'or as "headers" of its entry\n'
    )


async def test_the_doctor_tells_of_a_url_without_its_secrets(tmp_path: Path) -> None:
    async with serving(guarded) as peer:
        entry = {"url": f"{peer.origin}/mcp", "headers": {"Authorization": "Bearer ${WORD}"}}
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"web": entry}}))
        told = await ran(tmp_path, "doctor", "-e", f"WORD={SECRET}")
    assert (told.code, told.err) == (0, "")
    assert SECRET not in told.out
    assert told.out.splitlines()[2].startswith("web")
    assert f"  ok    url        {peer.origin}/mcp\n" in told.out
    assert "  ok    variable   WORD = ••• (13 characters) (-e)\n" in told.out
    assert "  ok    headers    Authorization (values not shown)\n" in told.out
    assert f"  ok    reached    {peer.origin.removeprefix('http://')} in " in told.out
    assert "  ok    speaks     stateless 2026-07-28\n" in told.out
    assert "  ok    offers     1 tools, " in told.out
