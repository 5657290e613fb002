"""What test/conformance.test.ts asks of a handler, in Python; module.ts is the same in JavaScript."""

import os
import random
import time

from oracle_worker import RetryableError, TerminalError, job, run


class Unusual(Exception):
    pass


def begin(input):
    """Tells the test that the handler runs."""
    with open(input["file"], "w") as file:
        file.write(str(os.getpid()))


@job("Python")
@job("warm Python")
def behave(ctx, input):
    how = input["how"]
    if how == "doubles":
        time.sleep(input.get("ms", 0) / 1000)
        return {"n": input["n"] * 2}
    if how == "breaks the output schema":
        return {"n": "many"}
    if how == "returns no JSON":
        return {"n": 1, "extra": [float("nan")]}
    if how == "throws":
        raise Unusual("broken")
    if how == "throws retryable":
        raise RetryableError("busy", retry_after_seconds=7)
    if how == "throws terminal":
        raise TerminalError("hopeless")
    if how == "throws a string":
        raise "just a string"
    if how == "throws a NUL":
        raise Unusual("zero \0 and half \ud800 a pair")
    if how == "snoozes":
        ctx.snooze(30)
    if how == "talks":
        ctx.progress(0.5, "half", {"step": 1})
        ctx.log.info("hello", n=1)
        return {"n": 1}
    if how == "talks loosely":
        for fraction in (float("nan"), "half", None, 10**400):
            ctx.progress(fraction)
        ctx.progress(0.5, 5, {"a": object()})
        for message in (5, None, object()):
            ctx.log.info(message)
        ctx.log.info("fields", a=object(), b=float("nan"))
        return {"n": 1}
    if how == "keeps an artifact":
        return {"n": 1, "extra": ctx.artifact("notes", {"a": [1]})}
    if how == "keeps a text":
        return {"n": 1, "extra": ctx.artifact("a.txt", "hello")}
    if how == "remembers steps and effects":
        drawn = ctx.step("draw", random.random)
        send = lambda key: {"key": key, "attempt": ctx.attempt_no}
        sent = ctx.effect("mail", "unsafe", {"to": "somebody"}, send)
        if ctx.attempt_no == 1:
            raise Unusual("after all that")
        return {"n": drawn, "extra": sent}
    if how == "heeds its signal":
        begin(input)
        ctx.cancelled.wait(60)
        ctx.check()
    if how == "computes for ever":
        begin(input)
        while True:
            pass
    if how == "exits":
        os._exit(3)
    if how == "shows its environment":
        return {"n": 1, "extra": os.environ.get(input["name"])}
    raise TerminalError(f"{how} is not for Python")


run()
