"""Rows of the matrix: servers that say the wrong thing, too much, too late, or nothing."""

from __future__ import annotations

import json

import anyio

from mcpclient import (
    CallLost,
    CallTimedOut,
    Limits,
    RemoteProtocolError,
    ReplyError,
    ToolError,
)
from tests.conftest import eventually
from tests.faults.matrix import (
    Fault,
    Scene,
    call,
    counted,
    echoes,
    opening,
    sinner,
    then_echo,
)

MEGABYTE = 1_000_000


async def came_late(scene: Scene) -> None:
    await eventually(lambda: scene.server.status().late == 1)
    await echoes(scene)


async def came_twice(scene: Scene) -> None:
    await eventually(lambda: scene.server.status().stray == 2)
    assert scene.server.status().noise == 0  # an id of ours, so it is no noise


async def never_read(scene: Scene) -> None:
    """Fill the pipe with one call; then another has no way out."""
    await scene.server.start()
    lost = None
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: scene.call("echo", text="x" * MEGABYTE))
        await scene.in_flight()
        try:
            await scene.call("echo", text="small")
        except CallLost as problem:
            lost = problem
        group.cancel_scope.cancel()
    assert lost is not None
    assert not lost.maybe_done
    raise lost


async def notified(scene: Scene) -> str:
    """Take many notices, with a handler that is slower than the server."""
    seen: list[int] = []

    async def handler(_server: object, params: dict[str, int]) -> None:
        seen.append(params["n"])
        await anyio.sleep(0)

    scene.notes["seen"] = seen
    scene.manager.on_notification("notifications/test", handler)
    text = await scene.call(n=10_000)
    await eventually(lambda: seen and seen[-1] == 9999)
    return text


async def all_are_accounted_for(scene: Scene) -> None:
    seen = scene.notes["seen"]
    assert seen == sorted(set(seen))
    assert len(seen) + scene.server.status().dropped == 10_000
    assert scene.server.status().dropped > 0
    await echoes(scene)


async def listed_for_ever(scene: Scene) -> None:
    """Answer each notice that the list changed by listing again, which sends another notice."""
    listed: list[int] = []

    async def handler(_server: object, _params: object) -> None:
        listed.append(len(await scene.server.list_tools()))

    scene.notes["listed"] = listed
    token = scene.manager.on_notification("notifications/tools/list_changed", handler)
    await scene.call(n=1000)
    await eventually(lambda: len(listed) >= 3)
    scene.manager.off_notification(token)


async def listed_a_few_times(scene: Scene) -> None:
    # The first at once; then one in 0.1 s, for each of which the server sends one more.
    assert len(scene.notes["listed"]) <= 4
    assert scene.server.status().merged >= 990
    await echoes(scene)


async def bounded_tail(scene: Scene) -> None:
    assert scene.server.stderr_tail() == "x" * 1000
    await echoes(scene)


async def refused_ask(scene: Scene) -> int:
    reply = json.loads(await scene.call("ask", method="window/showMessage", params={}))
    code: int = reply["error"]["code"]
    return code


WORDS = [
    # -- no answer, or one that is not it
    Fault(
        name="it never answers a call",
        server=sinner("good_handshake"),
        act=call("slow", seconds=60, timeout=0.2),
        error=CallTimedOut,
        says=("no answer within 200 ms", "the server may have carried it out"),
        also=echoes,
        cases=("B139",),
    ),
    Fault(
        name="it answers after the time-out",
        server=sinner("late_answer"),
        act=call(seconds=1.4, timeout=0.2),
        error=CallTimedOut,
        says=("no answer within 200 ms",),
        also=came_late,
    ),
    Fault(
        name="it answers everything twice",
        server=sinner("answers_twice"),
        act=then_echo(),
        gives="still here",
        also=came_twice,
    ),
    Fault(
        name="it answers under id 0",
        server=sinner("id_zero"),
        act=call(timeout=1.2),
        error=CallTimedOut,
        says=("no answer within 1.2 s", "an answer to id 0, which was never asked"),
        also=echoes,
    ),
    Fault(
        name='it answers under the id "null"',
        server=sinner("id_null_string"),
        act=call(timeout=1.2),
        error=CallTimedOut,
        says=("an answer that names no request of ours",),
        also=echoes,
    ),
    Fault(
        name="it answers with an error under the id null",
        server=sinner("null_id_error"),
        act=call(timeout=1.2),
        error=CallTimedOut,
        says=("an error that names no request of ours",),
        also=echoes,
    ),
    Fault(
        name="it answers with neither a result nor an error",
        server=sinner("id_missing_result"),
        act=call(),
        error=RemoteProtocolError,
        says=("the answer has neither a result nor an error",),
        also=echoes,
    ),
    Fault(
        name="it answers with a result and an error",
        server=sinner("both"),
        act=call(),
        error=ReplyError,
        also=echoes,
    ),
    Fault(
        name="it says that the tool failed",
        server=sinner("good_handshake"),
        act=call("fail"),
        error=ToolError,
        says=("it failed\nand here is why",),
    ),
    # -- no JSON
    Fault(
        name="it answers with half a line of JSON",
        server=sinner("broken_json"),
        act=call(),
        error=RemoteProtocolError,
        says=('tools/call on "sinner": broken JSON: {"jsonrpc"',),
        also=echoes,
    ),
    Fault(
        name="it answers over many lines",
        server=sinner("pretty"),
        act=call(timeout=1.2),
        error=CallTimedOut,
        says=("multi-line JSON: each message must stand on one line",),
        also=echoes,
    ),
    Fault(
        name="it breaks a string with a newline",
        server=sinner("raw_newline"),
        act=call(timeout=10),
        error=RemoteProtocolError,
        says=("broken JSON",),
        also=echoes,
    ),
    Fault(
        name="it nests its answer 100 000 deep",
        server=sinner("deep_nesting"),
        act=call(),
        error=RemoteProtocolError,
        says=("nested",),
        also=echoes,
    ),
    Fault(
        name="it answers with NaN",
        server=sinner("nan"),
        act=call(),
        error=RemoteProtocolError,
        says=("NaN or Infinity, which is not JSON",),
        also=echoes,
    ),
    Fault(
        name="it answers with more than the limit",
        server=sinner("huge_line", 1000, "nowhere", limits=Limits(frame=MEGABYTE)),
        act=call(size=2 * MEGABYTE),
        error=RemoteProtocolError,
        says=("the server sent a message of 2.0 MB; the limit is 1.0 MB (Limits.frame)",),
        also=counted(oversize=1),
    ),
    # -- too much
    Fault(
        name="it floods stdout with log lines",
        server=sinner("floods", "stdout"),
        act=then_echo(bytes=2 * MEGABYTE),
        gives="still here",
        also=counted(noise=31_250),
    ),
    Fault(
        name="it floods stdout without a newline",
        server=sinner("floods", "line", limits=Limits(frame=MEGABYTE)),
        act=then_echo(bytes=2 * MEGABYTE),
        gives="still here",
        also=counted(oversize=1, noise=0),
    ),
    Fault(
        name="it floods stderr without a newline",
        server=sinner("floods", "stderr", limits=Limits(stderr=1000)),
        act=then_echo(bytes=2 * MEGABYTE),
        gives="still here",
        also=bounded_tail,
        cases=("B83",),
    ),
    Fault(
        name="it floods both, by turns",
        server=sinner("floods", "both"),
        act=then_echo(bytes=2 * MEGABYTE),
        gives="still here",
        cases=("B85",),
    ),
    Fault(
        name="it sends 10 000 notifications at once",
        server=sinner("odd_notices", limits=Limits(inbox=100)),
        act=notified,
        gives="sin",
        also=all_are_accounted_for,
    ),
    Fault(
        name="it says without end that its list changed",
        server=sinner("list_storm"),
        act=listed_for_ever,
        also=listed_a_few_times,
        cases=("B201", "B203", "B210"),
    ),
    # -- too little
    Fault(
        name="it reads nothing any more",
        server=sinner("stops_reading"),
        act=never_read,
        error=CallLost,
        says=("the server has not read its input for", "safe to repeat"),
        cases=("B86",),
    ),
    Fault(
        name="it closes its stderr",
        server=sinner("stderr_closed"),
        act=then_echo(),
        gives="still here",
    ),
    # -- what nobody wanted to know
    Fault(
        name="it sends notices before it is open",
        server=sinner("early_notices"),
        act=opening,
        also=echoes,
        cases=("B206",),
    ),
    Fault(
        name="it sends notices that nobody knows",
        server=sinner("odd_notices"),
        act=then_echo(n=1),
        gives="still here",
        also=counted(noise=0, stray=0, dropped=0),
        cases=("B206", "B207"),
    ),
    Fault(
        name="it answers notifications, with errors",
        server=sinner("error_without_id"),
        act=then_echo(),
        gives="still here",
        cases=("B209",),
    ),
    Fault(
        name="it reports progress after its answer",
        server=sinner("odd_progress"),
        act=then_echo(when="after", token=3),
        gives="still here",
        also=counted(noise=0, stray=0),
        cases=("B212",),
    ),
    Fault(
        name="it asks for what nobody has heard of",
        server=sinner("asks_roots"),
        act=refused_ask,
        gives=-32601,
        also=echoes,
    ),
]
