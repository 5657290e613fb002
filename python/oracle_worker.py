"""Makes Python functions the handlers of Oracle Worker's jobs.

    from oracle_worker import job, run

    @job("score")
    def score(ctx, input):
        ctx.progress(0.5, "half of it")
        return {"score": len(input["text"])}

    run()

One file, Python 3.8 or newer on a POSIX system, nothing but the standard library: import it from the folder that
`oracle-worker python-path` prints, or copy it. What goes over the pipes is in docs/protocol.md.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections import deque
from itertools import count
from threading import Lock, RLock, Thread

# A one-shot child starts once per job: what only some jobs need (asyncio, typing …) is imported where it is used.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from datetime import datetime
    from typing import Any, Awaitable, Callable, Deque, Dict, List, NoReturn, Optional, Sequence, Tuple, TypeVar

    Handler = Callable[["Context", Any], Any]
    AnyHandler = TypeVar("AnyHandler", bound=Handler)

__all__ = ["job", "run", "Context", "OracleError", "RetryableError", "TerminalError", "EffectFailed", "Cancelled"]

PROTOCOL = 1
LONGEST_SNOOZE_SECONDS = 315_360_000
LONGEST_TEXT = 8000
LONGEST_LOOK_SECONDS = 3600.0
CHUNK = 1 << 16
LONGEST_LINE = 1 << 20
LONGEST_MESSAGE = 1 << 26
PART_LENGTH = 200_000
# Requests taken before the one under way is answered, and how long one may lie: then it goes back.
AHEAD = 128
LONGEST_LIE_SECONDS = 0.2
LOOK_SECONDS = 0.05


class OracleError(Exception):
    """The base of this module's errors. Other exceptions are retryable, too."""

    retryable = True
    retry_after_seconds: Optional[float] = None
    code: Optional[str] = None
    field: Optional[str] = None


class RetryableError(OracleError):
    """Try again later, `retry_after_seconds` from now at the earliest."""

    def __init__(self, message: str, retry_after_seconds: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TerminalError(OracleError):
    """Trying again would not help."""

    retryable = False


class EffectFailed(OracleError):
    """For the function of an effect: it certainly did not happen. Any other exception leaves that in doubt."""

    code = "EFFECT_FAILED"

    def __init__(self, message: str, retryable: bool = True, retry_after_seconds: Optional[float] = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class Cancelled(OracleError):
    """The attempt was told to end: cancel, timeout, lost lease or shutdown."""


class _OutputRejected(TerminalError):
    code = "OUTPUT_REJECTED"


class _InvalidArgument(TerminalError):
    code = "INVALID_ARGUMENT"

    def __init__(self, what: str, field: str, value: Any, right: str) -> None:
        super().__init__(f"{what}: {field} is {value!r}; it must be {right}.")
        self.field = field


class _EffectOpen(TerminalError):
    code = "EFFECT_OPEN"


class _Unfit(OracleError):
    """This program is not the one the worker takes it for."""

    code = "HANDLERS_INVALID"


class _Snooze(BaseException):
    """Not an Exception: it must pass every `except Exception` of a handler."""

    def __init__(self, seconds: float) -> None:
        super().__init__("snooze")
        self.seconds = seconds


_handlers: Dict[str, Handler] = {}


def job(type: str) -> Callable[[AnyHandler], AnyHandler]:
    """Makes a function, `def` or `async def`, the handler of a job type. It can still be called by anybody."""

    def register(handler: AnyHandler) -> AnyHandler:
        if type in _handlers:
            raise ValueError(f"job type {type!r} has two handlers in this program")
        _handlers[type] = handler
        return handler

    return register


def run() -> NoReturn:
    """Serves jobs until there are no more: the last line of a program of handlers."""
    warm = os.environ.get("ORACLE_WORKER_WARM") == "1"
    sys.exit((_WarmLink() if warm else _OneShotLink()).serve())


class Context:
    """What a handler may use while it runs."""

    def __init__(self, request: Dict[str, Any], link: _Link) -> None:
        self.input: Any = request["input"]
        self.job_id: str = request["job_id"]
        self.job_type: str = request["job_type"]
        self.attempt_id: str = request["attempt_id"]
        self.attempt_no: int = request["attempt_no"]
        self.tenant_id: str = request["tenant_id"]
        self.idempotency_key: str = request["idempotency_key"]
        self.cancelled = Cancellation(link)
        self.log = Log(self)
        self._deadline: Optional[str] = request["deadline"]
        self._version: int = request["v"]
        self._link = link
        # Steps under way: the worker hears of one only before and after its function.
        self._open: List[str] = []

    @property
    def deadline(self) -> Optional[datetime]:
        """When the job must be done, in UTC."""
        from datetime import datetime

        text = self._deadline
        return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))

    def progress(self, fraction: float, message: Optional[str] = None, details: Any = None) -> None:
        """How far the work is, from 0 to 1. The latest report is kept."""
        try:
            share = float(fraction)
        except (TypeError, ValueError, OverflowError):
            share = float("nan")
        if share != share:  # not a number
            self.log.warn(f"progress({fraction!r}) is ignored: the fraction must be a number from 0 to 1.")
            return
        report: Dict[str, Any] = {"fraction": min(1.0, max(0.0, share))}
        if message is not None:
            report["message"] = str(message)
        if details is not None:
            report["details"] = _loose(details)
        self._send({"progress": report})

    def usage(self, tokens: int = 0, cost: float = 0.0) -> None:
        """Adds to what the attempt has used of models and other services."""
        self._send({"usage": {"tokens": tokens, "cost": cost}})

    def artifact(self, name: str, content: Any, media_type: Optional[str] = None) -> Dict[str, Any]:
        """Keeps text, bytes or a JSON value with the attempt. Returns its reference once it is durable."""
        _check_texts("artifact", name=name)
        body: Dict[str, Any] = {"name": name}
        if media_type is not None:
            body["media_type"] = media_type
        if isinstance(content, str):
            body["text"] = content
        elif isinstance(content, (bytes, bytearray, memoryview)):
            from base64 import b64encode

            body["base64"] = b64encode(content).decode()
        else:
            body["json"] = content
        reference: Dict[str, Any] = self._link.call(self, "artifact", body)
        return reference

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        """Runs the function once in the life of the job; later attempts get its value."""
        _check_texts("step", name=name)
        self._open.append(name)
        try:
            found = self._link.call(self, "step", {"name": name})
            if found["known"]:
                return found["value"]
            return self._link.call(self, "step", {"name": name, "value": function()})
        finally:
            self._open.remove(name)

    def effect(
        self,
        name: str,
        kind: str,
        request: Any,
        function: Callable[[str], Any],
        lookup: Optional[Callable[[str], Dict[str, Any]]] = None,
    ) -> Any:
        """Records what is about to be done outside, calls the function with the key to send along, records the end.

        A confirmed effect is not made again: later attempts get its response. In doubt, an `idempotent` one is sent
        again, `reconcilable` asks `lookup` for {"happened": True, "response": …}, {"happened": False} or
        {"happened": "unknown"}, and an `unsafe` one holds the job until a person decides.
        """
        _check_texts("effect", name=name, kind=kind)
        if kind == "reconcilable" and lookup is None:
            raise TerminalError(f"effect {name}: kind reconcilable needs a lookup function.")
        announced = {"name": name, "kind": kind, "request": request}
        begun = self._link.call(self, "effect", announced)
        if begun["next"] == "look_up" and lookup:
            found = lookup(begun["idempotency_key"])
            if found["happened"] is True:
                return self._end_effect(name, "confirmed", response=found["response"])
            if found["happened"] is not False:
                return self._end_effect(name, "unknown")  # raises: only a person can tell
            absent = EffectFailed("the lookup found that it had not happened")
            self._end_effect(name, "failed", error=_describe(absent))
            begun = self._link.call(self, "effect", announced)
        if begun["next"] == "done":
            return begun["response"]
        try:
            response = function(begun["idempotency_key"])
            _to_json(response)  # what cannot be recorded leaves a doubt, too
        except BaseException as error:
            outcome = "failed" if isinstance(error, EffectFailed) else "in_doubt"
            self._end_effect(name, outcome, error=_describe(error))
            raise
        return self._end_effect(name, "confirmed", response=response)

    def plan(self, effects: List[Dict[str, Any]]) -> None:
        """For a job type with approval: goes on once these effects, each {"name", "kind", "request"}, may be sent."""
        self._link.call(self, "plan", {"effects": effects})

    def on_commit(self, name: str, sql: str, values: Sequence[Any] = ()) -> None:
        """SQL that commits together with the result, as the login of the database's address, or not at all."""
        _check_texts("on_commit", name=name, sql=sql)
        if not isinstance(values, (list, tuple)):
            raise _InvalidArgument("on_commit", "values", values, "a list")
        self._link.promise(self, "commit", {"name": name, "sql": sql, "values": list(values)})

    def _end_effect(self, name: str, outcome: str, **details: Any) -> Any:
        return self._link.call(self, "effect", {"name": name, "outcome": outcome, **details})

    def check(self) -> None:
        """Raises Cancelled if the attempt was told to end."""
        if self.cancelled:
            raise Cancelled(f"told to end: {self.cancelled.reason}")

    def snooze(self, seconds: float) -> NoReturn:
        """Ends this attempt without a fault; the job runs again after so many seconds, at no cost."""
        if not 0 <= seconds <= LONGEST_SNOOZE_SECONDS:
            raise TerminalError(f"snooze({seconds!r}): give seconds from 0 to {LONGEST_SNOOZE_SECONDS}.")
        raise _Snooze(seconds)

    def _send(self, message: Dict[str, Any]) -> None:
        self._link.send(self, message)


class Log:
    """Lines that are kept with the attempt."""

    def __init__(self, context: Context) -> None:
        self._send = context._send

    def info(self, message: str, /, **fields: Any) -> None:
        self._write("info", message, fields)

    def warn(self, message: str, /, **fields: Any) -> None:
        self._write("warn", message, fields)

    def error(self, message: str, /, **fields: Any) -> None:
        self._write("error", message, fields)

    def _write(self, level: str, message: str, fields: Dict[str, Any]) -> None:
        line: Dict[str, Any] = {"level": level, "message": str(message)}
        if fields:
            line["fields"] = {name: _loose(value) for name, value in fields.items()}
        self._send({"log": line})


class Cancellation:
    """True once the attempt was told to end. It looks for the worker's word when asked; no thread waits for it."""

    def __init__(self, link: _Link) -> None:
        self.reason: Optional[str] = None
        self.on_set: Optional[Callable[[], Any]] = None
        self._link = link

    def __bool__(self) -> bool:
        if self.reason is None:
            self._link.look(0)
        return self.reason is not None

    is_set = __bool__

    def wait(self, seconds: float) -> bool:
        """A sleep that ends early when the attempt is told to end. Returns whether it was."""
        ends_at = time.monotonic() + seconds
        while not self:
            left = ends_at - time.monotonic()
            if left <= 0:
                break
            self._link.look(min(left, LONGEST_LOOK_SECONDS))
        return self.reason is not None

    def set(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason
            if self.on_set:
                self.on_set()


class _Link:
    """The way to the worker, kept apart from what handlers print and read themselves."""

    def __init__(self) -> None:
        self.context: Optional[Context] = None
        self.ending = False
        # Goes with the answer, for want of another way.
        self.carried: Dict[str, Dict[str, Any]] = {}
        self._in, self._out, self._err = os.dup(0), os.dup(1), os.dup(2)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(line_buffering=True, errors="backslashreplace")
        # A poll goes on waiting after a signal's handler ran: only something to read ends it.
        woken, self._wake = os.pipe()
        self._poll = select.poll()
        self._poll.register(woken, select.POLLIN)
        self._writing = RLock()  # a signal's handler may come while its thread holds it
        signal.signal(signal.SIGTERM, self._on_term)
        # A process that a handler forks ends by the signal like any other.
        os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))

    def answer(self, context: Context) -> bool:
        """Runs one job and writes its response. Returns whether it succeeded."""
        try:
            response = {"attempt_id": context.attempt_id, "ok": True, "result": _call_handler(context)}
            if context._open:
                names = ", ".join(map(repr, context._open))
                raise _EffectOpen(f"The handler returned while the step {names} was still open: wait for every one.")
            response.update(self.carried)
            ok, text = True, _output_text(response)
        except BaseException as error:  # SystemExit and KeyboardInterrupt end the attempt, not this program
            response = {"attempt_id": context.attempt_id, "ok": False, "error": _describe(error), **self.carried}
            ok, text = False, _to_json(response)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()  # half a line is its attempt's, too
            except Exception:
                pass  # what a handler did to them is its own affair
        with self._writing:
            self._answer(context, text)
            # After the answer, for a SIGTERM without a context ends the program on the spot; and with it, for a
            # thread that outlives its attempt must not speak for the next one.
            self.context = None
        context.cancelled.set("its attempt has ended")
        return ok

    def _answer(self, context: Context, text: bytes) -> None:
        _write(self._out, text)

    def look(self, seconds: float) -> None:
        """Hears what the worker says; waits for it at most so long."""
        self._poll.poll(seconds * 1000)

    def watch(self, loop: AbstractEventLoop) -> None:
        """Lets an event loop hear it as well."""

    def serve(self) -> int:
        raise NotImplementedError

    def send(self, context: Context, message: Dict[str, Any]) -> bool:
        """Returns whether the attempt could still speak."""
        raise NotImplementedError

    def call(self, context: Context, kind: str, body: Dict[str, Any]) -> Any:
        raise NotImplementedError

    def promise(self, context: Context, kind: str, body: Dict[str, Any]) -> None:
        """A message that the attempt's success depends on."""
        raise NotImplementedError

    def leave(self) -> None:
        """Says that no job was begun since the last answer."""

    def _on_term(self, *_: Any) -> None:
        self.ending = True
        if self.context is None:
            self.leave()
            sys.exit(0)
        self.context.cancelled.set("SIGTERM")
        os.write(self._wake, b"!")


class _OneShotLink(_Link):
    """One document in, one out. Between them there is only stderr, and nobody who answers."""

    def serve(self) -> int:
        with open(self._in, "rb") as stdin:
            self.context = Context(json.loads(stdin.read()), self)
        return 0 if self.answer(self.context) else 1

    def send(self, context: Context, message: Dict[str, Any]) -> bool:
        if "progress" in message:
            report = message["progress"]
            line = f"progress {report['fraction']:.0%} {report.get('message', '')}".rstrip()
        elif "usage" in message:
            so_far = self.carried.setdefault("usage", {"tokens": 0, "cost": 0})
            for name, value in message["usage"].items():
                so_far[name] += value
            return True
        else:
            entry = message["log"]
            fields = "".join(f" {name}={value!r}" for name, value in entry.get("fields", {}).items())
            line = f"{entry['level']} {entry['message']}{fields}"
        print(line, file=sys.stderr)
        return True

    def call(self, context: Context, kind: str, body: Dict[str, Any]) -> Any:
        raise TerminalError(f'{kind}() needs an answer, which only a warm child gets: give this job "warm": 1.')

    promise = call


class _WarmLink(_Link):
    """Lines in both directions, one job at a time. Whoever waits for a line reads for all.

    Requests come before it is their turn. One that is told to end while it lies here, or that lies long behind a job
    that takes its time, goes back: it was not begun.
    """

    def __init__(self) -> None:
        super().__init__()
        self._poll.register(self._in, select.POLLIN)
        self._input = select.poll()
        self._input.register(self._in, select.POLLIN)
        self._rest = b""
        self._reading = Lock()
        self._ahead = os.environ.get("ORACLE_WORKER_AHEAD") == "1"
        # With the time when each came. Taken out only by who holds `_writing`, so that nothing of the next job is
        # said before it is said that one goes back.
        self._requests: Deque[Tuple[float, Dict[str, Any]]] = deque()
        self._minded = False
        self._replies: Dict[int, Dict[str, Any]] = {}
        self._calls = count(1)

    def serve(self) -> int:
        if self._ahead:
            _write(self._out, b'{"ahead":%d}\n' % AHEAD)
        while not self.ending:
            with self._reading:
                # Whatever has come is read before a job begins: it may be the word that this one is not to.
                if (not self._requests or self._input.poll(0)) and not self._read():
                    return 0
            context = self._begin()
            if context:
                self.answer(context)
        self.leave()
        return 0

    def _begin(self) -> Optional[Context]:
        with self._writing:
            self._give_back_old()
            if not self._requests:
                return None
            request = self._requests.popleft()[1]
            self.context = Context(request, self)
            self.context.cancelled.reason = request.get("cancelled")
            if self._requests and self._ahead and not self._minded:
                self._minded = True
                Thread(target=self._mind, daemon=True).start()
            return self.context

    def _mind(self) -> None:
        """As long as requests lie behind a job: hears whether they are to be begun at all, and gives old ones back."""
        while self._minded:
            time.sleep(LOOK_SECONDS)
            try:
                self.look(0)
                with self._writing:
                    self._give_back_old()
                    self._minded = len(self._requests) > 0
            except BrokenPipeError:
                return  # the worker has gone, and will end this program

    def _give_back_old(self) -> None:
        if self._ahead and self._requests and time.monotonic() - self._requests[0][0] > LONGEST_LIE_SECONDS:
            self._give_back(list(self._requests))

    def _give_back(self, lying: List[Tuple[float, Dict[str, Any]]]) -> None:
        for one in lying:
            self._requests.remove(one)
        if lying:
            _write(self._out, _to_json({"returned": [request["attempt_id"] for _, request in lying]}))

    def _answer(self, context: Context, text: bytes) -> None:
        if self._ahead:
            # Ends what this attempt wrote to stderr: the next one begins before the worker has read it.
            _write(self._err, f"\x1e{context.attempt_id}\n".encode())
        _write(self._out, text)

    def send(self, context: Context, message: Dict[str, Any]) -> bool:
        text = _to_json(message)
        if len(text) > LONGEST_LINE:
            text = _in_parts(text)
        with self._writing:
            if self.context is not context:
                return False
            _write(self._out, text)
            return True

    def leave(self) -> None:
        try:
            with self._writing:
                _write(self._out, b'{"leaving":true}\n')
        except BrokenPipeError:
            pass  # nobody is left to hear it

    def promise(self, context: Context, kind: str, body: Dict[str, Any]) -> None:
        if not self.send(context, {kind: body}):
            raise Cancelled(f"{kind}() came after the end of its attempt.")

    def call(self, context: Context, kind: str, body: Dict[str, Any]) -> Any:
        call = next(self._calls)
        open = self.send(context, {kind: {"id": call, **body}})
        while open and call not in self._replies:
            with self._reading:
                if call not in self._replies:
                    open = self._read() and self.context is context
        if call not in self._replies:
            raise Cancelled(f"{kind}() got no reply before the end of its attempt.")
        reply = self._replies.pop(call)
        if reply["ok"]:
            return reply["value"]
        raise _refusal(reply["error"])

    def look(self, seconds: float) -> None:
        if not self._reading.acquire(blocking=False):
            # Another thread of the handler is reading, and hears for this one as well.
            if self._reading.acquire(timeout=seconds):
                self._reading.release()
            return
        try:
            if any(fd == self._in for fd, _ in self._poll.poll(seconds * 1000)):
                self._read()
        finally:
            self._reading.release()

    def watch(self, loop: AbstractEventLoop) -> None:
        def hear() -> None:
            self.look(0)
            if self.ending:  # a closed pipe stays readable for ever
                loop.remove_reader(self._in)

        loop.add_reader(self._in, hear)

    def _read(self) -> bool:
        """Takes in what has come, or waits for it. False once the worker has gone."""
        chunk = os.read(self._in, CHUNK)
        if chunk:
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                self._hear(json.loads(line.decode()))
            return True
        self.ending = True
        if self.context:
            self.context.cancelled.set("the worker has gone")
        return False

    def _hear(self, message: Dict[str, Any]) -> None:
        if "v" in message:
            self._requests.append((time.monotonic(), message))
        elif "reply" in message:
            self._replies[message["reply"]] = message
        elif "cancel" in message:
            self._cancel(message["cancel"])

    def _cancel(self, cancel: Dict[str, Any]) -> None:
        with self._writing:
            context = self.context
            if context is None or context.attempt_id != cancel["attempt_id"]:
                lying = [one for one in self._requests if one[1]["attempt_id"] == cancel["attempt_id"]]
                if self._ahead:
                    self._give_back(lying)
                for _, request in lying:  # a worker that knows nothing of going back wants an answer
                    request["cancelled"] = cancel["reason"]
                return
        context.cancelled.set(cancel["reason"])


def _check_texts(what: str, **values: Any) -> None:
    for field, value in values.items():
        if not isinstance(value, str):
            raise _InvalidArgument(what, field, value, "a text")


def _refusal(error: Dict[str, Any]) -> OracleError:
    """The worker's error as an exception; passed on by the handler, it leads to the same record."""
    if error.get("code") == EffectFailed.code:
        return EffectFailed(error["message"], error["retryable"])
    refusal = (RetryableError if error["retryable"] else TerminalError)(error["message"])
    refusal.code = error.get("code")
    refusal.field = error.get("field")
    return refusal


def _write(to: int, text: bytes) -> None:
    while text:
        text = text[os.write(to, text) :]


def _call_handler(context: Context) -> Any:
    if context._version != PROTOCOL:
        raise _Unfit(f"oracle_worker.py speaks protocol {PROTOCOL}, the worker {context._version}.")
    handler = _handlers.get(context.job_type)
    if handler is None:
        known = ", ".join(map(repr, _handlers)) or "none"
        raise _Unfit(f"{sys.argv[0]} has no handler for job type {context.job_type!r}; it has {known}.")
    result = handler(context, context.input)
    return _await(context, result) if hasattr(result, "__await__") else result


def _await(context: Context, awaitable: Awaitable[Any]) -> Any:
    """Runs an `async def` handler; a cancel reaches it as asyncio's own."""
    import asyncio

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(awaitable)
        context.cancelled.on_set = lambda: loop.call_soon_threadsafe(task.cancel)
        context._link.watch(loop)
        if context.cancelled:
            task.cancel()
        try:
            return await task
        finally:
            context.cancelled.on_set = None

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if context.cancelled.reason is None:  # by its own doing
            raise
        raise Cancelled(f"told to end: {context.cancelled.reason}") from None


def _describe(error: BaseException) -> Dict[str, Any]:
    """Whatever was raised, as an error envelope. Never raises."""
    if isinstance(error, _Snooze):
        seconds = error.seconds
        return {"class": "Snooze", "message": "snooze", "retryable": True, "retry_after_seconds": seconds}
    envelope: Dict[str, Any] = {
        "class": type(error).__name__,
        "message": _message_of(error),
        "retryable": getattr(error, "retryable", True) is not False,
        "traceback": _traceback_of(error),
    }
    code = "MEMORY_LIMIT" if isinstance(error, MemoryError) else getattr(error, "code", None)
    if isinstance(error, (OracleError, MemoryError)) and code:
        envelope["code"] = code
        if isinstance(error, OracleError) and error.field is not None:
            envelope["field"] = error.field
    wait = getattr(error, "retry_after_seconds", None)
    if isinstance(wait, (int, float)) and 0 < wait < float("inf"):
        envelope["retry_after_seconds"] = wait
    return envelope


def _message_of(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the handler called sys.exit({error.code!r})"
    try:
        return str(error)[:LONGEST_TEXT] or type(error).__name__
    except Exception:
        return f"a {type(error).__name__} that cannot be shown"


def _traceback_of(error: BaseException) -> str:
    import traceback

    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception:
        return "a traceback that cannot be shown"
    # Its end tells most.
    return text if len(text) <= LONGEST_TEXT else "[cut] …" + text[-LONGEST_TEXT:]


_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_escaped = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def _to_json(value: Any) -> bytes:
    """One line of JSON. NaN and infinities are refused, because they are none."""
    try:
        return _compact(value).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair: only an escape can carry it
        return _escaped(value).encode() + b"\n"


def _in_parts(message: bytes) -> bytes:
    """The lines of a message that is too long for one."""
    if len(message) > LONGEST_MESSAGE:
        raise _OutputRejected(f"The message is longer than {LONGEST_MESSAGE} bytes: keep such data elsewhere.")
    text = message.decode().rstrip("\n")
    parts: List[Dict[str, Any]] = [
        {"part": text[start : start + PART_LENGTH]} for start in range(0, len(text), PART_LENGTH)
    ]
    parts[-1]["last"] = True
    return b"".join(map(_to_json, parts))


def _loose(value: Any) -> Any:
    """What a handler says is not worth a failed job: what is no JSON is written as text."""
    try:
        _to_json(value)
        return value
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _output_text(response: Dict[str, Any]) -> bytes:
    try:
        return _to_json(response)
    except (TypeError, ValueError, RecursionError) as error:
        raise _OutputRejected(f"The output cannot be written as JSON: {error}.") from error
