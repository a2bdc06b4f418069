"""One life of a scripted server: lines in, acts out, as the plan says. Waits for nothing itself.

What was not scripted is refused and noted, so that it is seen twice: where it was asked, and when
the script is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from mcpclient.protocol import methods
from mcpclient.testing import acts, plan
from mcpclient.testing.acts import as_mapping, frame, parsed
from mcpclient.testing.manners import Manners, complete, is_stateless
from mcpclient.testing.plan import contains
from mcpclient.testing.streams import Listeners

if TYPE_CHECKING:
    from mcpclient.testing.acts import Act
    from mcpclient.testing.journal import Journal
    from mcpclient.testing.plan import Plan, Scripted


class _Run:
    """One step that happens, as far as it has come."""

    def __init__(
        self, step: Scripted, id: Any, method: str, params: dict[str, Any], *, stateless: bool
    ) -> None:
        self.step = step
        self.id = id
        self.method = method
        self.params = params
        self.stateless = stateless
        self.place = 0
        self.due: float | None = None
        self.delayed = False
        self.settled = id is None
        self.ask: plan.Ask | None = None

    @property
    def token(self) -> Any:
        return as_mapping(self.params.get("_meta")).get("progressToken")


class Play:
    """The part of a scripted server in one of its lives."""

    def __init__(self, script: Plan, life: int, journal: Journal) -> None:
        """Prepare a life.

        Args:
            script: What is played.
            life: Its number, from 1.
            journal: Where it is written down what happened.
        """
        self._plan = script
        self._life = life
        self._journal = journal
        self._manners = Manners(script)
        self._listeners = Listeners()
        self._waiting: list[_Run] = []
        # By the id of our question, or by the state of a round.
        self._asking: dict[Any, _Run] = {}
        self._questions = 0
        self._begun: set[int] = set()
        self._stateless = script.era == "stateless"

    # -- what happens ----------------------------------------------------------------------

    @property
    def due(self) -> float | None:
        """See :class:`~mcpclient.testing.acts.Part`."""
        return min((run.due for run in self._waiting if run.due is not None), default=None)

    def begin(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        found: list[Act] = []
        while step := self._next(plan.START, {}):
            found += self._go(_Run(step, None, plan.START, {}, stateless=self._stateless), now)
        return found

    def tick(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        found: list[Act] = []
        for run in [one for one in self._waiting if one.due is not None and one.due <= now]:
            self._waiting.remove(run)
            run.due = None
            found += self._go(run, now)
        return found

    def receive(self, line: bytes, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        message = parsed(line)
        if message is None:
            if line.strip():
                self._fault(f"the client sent what is no message: {line[:200]!r}")
            return []
        self._journal.write("got", life=self._life, message=message)
        method, params = message.get("method"), as_mapping(message.get("params"))
        if not isinstance(method, str):
            return self._answered(message, now)
        id = message.get("id")
        if id is None:
            if method == methods.CANCELLED:
                self._listeners.drop(params.get("requestId"))
            step = self._next(method, params)
            if step is None:
                return []
            return self._go(_Run(step, None, method, params, stateless=self._stateless), now)
        self._stateless = stateless = is_stateless(params)
        state = params.get("requestState")
        if isinstance(state, str) and (run := self._asking.pop(state, None)) is not None:
            run.id, run.params = id, params
            answer = as_mapping(params.get("inputResponses")).get(_KEY)
            return self._heard(run, answer, now)
        step = self._next(method, params)
        if step is None and method == methods.LISTEN and stateless:
            return [acts.Write(frame(self._listeners.add(id, params)))]
        if step is None:
            if self._manners.answer(method, params) is None:
                return [self._unscripted(id, method, params)]
            step = plan.Scripted(0, "", method, actions=[plan.Answer()])
        return self._go(_Run(step, id, method, params, stateless=stateless), now)

    def _next(self, method: str, params: dict[str, Any]) -> Scripted | None:
        used = self._journal.used
        for step in self._plan.steps:
            if (
                step.method == method
                and step.life in (None, self._life)
                and (step.times is None or used[step.number] < step.times)
                and contains(params, step.params)
            ):
                # One that waits for the start happens once in a life, however often that is.
                if method == plan.START and step.number in self._begun:
                    continue
                self._begun.add(step.number)
                self._journal.use(step.number, self._life)
                return step
        return None

    def _unscripted(self, id: Any, method: str, params: dict[str, Any]) -> Act:
        name = params.get("name", params.get("uri"))
        asked = f"{method} {name!r}" if name is not None else method
        self._journal.write("unexpected", life=self._life, method=method, params=params)
        return _refusal(id, methods.METHOD_NOT_FOUND, f"the script has no step for {asked}")

    # -- what it does ----------------------------------------------------------------------

    def _go(self, run: _Run, now: float) -> list[Act]:
        """Perform a step until it waits, asks, or is over."""
        found: list[Act] = []
        actions = run.step.actions
        while run.place < len(actions):
            action = actions[run.place]
            late = self._plan.delay and not run.delayed
            if late and isinstance(action, plan.Answer | plan.Fail):
                run.delayed = True
                self._wait(run, now + self._plan.delay)
                return found
            run.place += 1
            if isinstance(action, plan.Wait):
                self._wait(run, now + action.seconds)
                return found
            if isinstance(action, plan.Ask):
                return found + self._ask(run, action)
            found += self._do(run, action)
        if not run.settled and not run.step.where:
            return found
        if not run.settled:
            # Who says only when, or what comes before, means the usual answer.
            if self._manners.answer(run.method, run.params) is not None:
                return found + self._do(run, plan.Answer())
            problem = f"{run.step} never answers: end it with answer(), error() or silence()"
            self._fault(problem)
            found.append(_refusal(run.id, _INTERNAL, problem))
        return found

    def _wait(self, run: _Run, until: float) -> None:
        run.due = until
        self._waiting.append(run)

    def _do(self, run: _Run, action: plan.Action) -> list[Act]:
        match action:
            case plan.Answer() | plan.Fail():
                return self._reply(run, action)
            case plan.Notify(method=method, params=params, count=count):
                told = self._listeners.told(method, params) if run.stateless else [params]
                return [
                    acts.Write(frame({"method": method, "params": one}) * count) for one in told
                ]
            case plan.Progress(progress=progress, total=total, message=message):
                if run.token is None:
                    return []
                more = {"total": total, "message": message}
                params = {"progressToken": run.token, "progress": progress}
                params |= {name: value for name, value in more.items() if value is not None}
                return [acts.Write(frame({"method": methods.PROGRESS, "params": params}))]
            case plan.Raw(data=data):
                return [acts.Write(data)]
            case plan.Complain(text=text):
                return [acts.Complained(text.encode("utf-8", "replace"))]
            case plan.Die(code=code, signal=signal):
                run.settled = True
                return [acts.End(signal=signal) if signal is not None else acts.End(code=code)]
            case plan.Deafen():
                run.settled = True
                return [acts.Deaf()]
            case plan.Mute():
                run.settled = True
                return [acts.Dumb()]
            case plan.Silence():
                run.settled = True
                return []
            case plan.Wait() | plan.Ask():
                raise AssertionError("these end a run for a while")
            case _:
                assert_never(action)

    def _reply(self, run: _Run, action: plan.Answer | plan.Fail) -> list[Act]:
        if run.id is None:
            self._fault(f"{run.step} answers, but {run.method} is no request")
            return []
        run.settled = True
        if isinstance(action, plan.Fail):
            body = {"code": action.code, "message": action.message}
            if action.data is not None:
                body["data"] = action.data
            return [acts.Write(frame({"id": run.id, "error": body}))]
        try:
            result = self._result(run, action)
            data = frame({"id": run.id, **result})
        except Exception as problem:  # the user's own function, or what it returned
            told = f"{run.step}: its answer failed: {problem!r}"
            self._fault(told)
            return [_refusal(run.id, _INTERNAL, told)]
        data = data[: action.cut]
        drip = action.drip or len(data) or 1
        return [acts.Write(data[at : at + drip]) for at in range(0, len(data), drip)]

    def _result(self, run: _Run, action: plan.Answer) -> dict[str, Any]:
        result = action.result
        if callable(result):
            result = result(run.params)
        elif result is None:
            result = self._manners.answer(run.method, run.params)
            if result is None:
                raise ValueError(f"there is no usual answer to {run.method}; give one")
            if "error" in result:
                return result
        stateless = run.stateless or run.method == methods.DISCOVER
        return {"result": complete(run.method, result) if stateless else result}

    # -- asking back -----------------------------------------------------------------------

    def _ask(self, run: _Run, ask: plan.Ask) -> list[Act]:
        self._questions += 1
        run.ask = ask
        if ask.expect is not None:
            told = {"step": run.step.number, "method": ask.method, "life": self._life}
            self._journal.write("asked", **told)
        key = f"ask-{self._questions}"
        if not run.stateless:
            self._asking[key] = run
            return [acts.Write(frame({"id": key, "method": ask.method, "params": ask.params}))]
        if run.id is None:
            self._fault(f"{run.step} asks, but a stateless server may only do so in an answer")
            return []
        self._asking[key] = run
        asked = {_KEY: {"method": ask.method, "params": ask.params}}
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": key}
        return [acts.Write(frame({"id": run.id, "result": result}))]

    def _answered(self, message: dict[str, Any], now: float) -> list[Act]:
        run = self._asking.pop(message.get("id"), None)
        if run is None:
            self._fault(f"the client answered what was never asked: {message}")
            return []
        error = message.get("error")
        return self._heard(run, message.get("result") if error is None else {"error": error}, now)

    def _heard(self, run: _Run, answer: Any, now: float) -> list[Act]:
        ask = run.ask
        assert ask is not None
        told = {"step": run.step.number, "method": ask.method, "answer": answer}
        self._journal.write("answer", life=self._life, **told)
        if ask.expect is not None and not contains(answer, ask.expect):
            self._fault(f"{run.step}: {ask.method} was answered {answer}, not {ask.expect}")
        return self._go(run, now)

    def _fault(self, text: str) -> None:
        self._journal.write("fault", life=self._life, text=text)


_KEY = "ask"
_INTERNAL = -32603


def _refusal(id: Any, code: int, message: str) -> Act:
    return acts.Write(frame({"id": id, "error": {"code": code, "message": message}}))
