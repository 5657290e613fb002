"""Handlers for test/python.test.ts, good and bad."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time

from oracle_worker import EffectFailed, OracleError, RetryableError, TerminalError, job, run

print("printed while the program was loaded")


class Snooze(Exception):
    """Somebody's own class."""


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


@job("echo")
def echo(ctx, input):
    return input


@job("later")
async def later(ctx, input):
    await asyncio.sleep(0.001)
    return {"async": ctx.input}


@job("noisy")
def noisy(ctx, input):
    print("printed", "\ud800")
    os.write(1, b"written to 1\n")
    subprocess.run(["echo", "said by a child"], check=True)
    return {"stdin": sys.stdin.read(), "child": subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout.decode()}


@job("raise")
def fail(ctx, input):
    raise {
        "plain": ValueError("wrong \0 value"),
        "retry": RetryableError("busy", 7.5),
        "retry_never": RetryableError("busy", float("nan")),
        "terminal": TerminalError("hopeless"),
        "base": OracleError("of ours"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "memory": MemoryError(),
        "unprintable": Unprintable(),
        "long": ValueError("x" * 100_000),
        "half": ValueError("half \ud800 a pair"),
        "own_snooze": Snooze("not what it seems"),
        "empty": AssertionError(),
    }[input]


@job("return")
def give(ctx, input):
    circle = []
    circle.append(circle)
    return {
        "nan": {"a": [float("nan")]},
        "infinity": float("inf"),
        "object": object(),
        "bytes": b"bytes",
        "circle": circle,
        "half": "half \ud800 a pair",
        "none": None,
        "large": "é" * 400_000,
        "tuple": (1, 2.5, True, "ü", {"k": None}),
    }[input]


@job("snooze")
def snooze(ctx, input):
    try:
        ctx.snooze(input)
    except Exception as error:
        raise TerminalError(f"caught {error}")


@job("facts")
def facts(ctx, input):
    names = ["job_id", "job_type", "attempt_id", "attempt_no", "tenant_id", "idempotency_key"]
    deadline = ctx.deadline
    return {
        **{name: getattr(ctx, name) for name in names},
        "deadline": deadline and [deadline.isoformat(), deadline.utcoffset().total_seconds()],
        "same_input": ctx.input is input,
        "cancelled": bool(ctx.cancelled),
    }


@job("wrong")
def wrong(ctx, input):
    {
        "step": lambda: ctx.step(5, dict),
        "effect": lambda: ctx.effect("e", 5, {}, dict),
        "artifact": lambda: ctx.artifact(None, "text"),
        "sql": lambda: ctx.on_commit("c", 5),
        "values": lambda: ctx.on_commit("c", "SELECT 1", "x"),
    }[input]()


@job("talk")
def talk(ctx, input):
    ctx.progress(0.25)
    ctx.progress(2, "most of it", {"step": [1, 2]})
    ctx.progress(float("nan"))
    ctx.usage(tokens=12)
    ctx.usage(tokens=3, cost=0.5)
    ctx.log.info("plain")
    ctx.log.warn("with fields", message="a field", self=1)
    ctx.log.error("no JSON", thing=object, number=float("inf"))
    return "done"


@job("artifact")
def artifact(ctx, input):
    contents = {"text": "größe", "bytes": b"\x00\xff", "json": {"a": [1]}}
    return ctx.artifact(input, contents[input], media_type="text/plain" if input == "text" else None)


@job("artifacts_in_threads")
def artifacts_in_threads(ctx, input):
    kept = {}
    threads = [
        threading.Thread(target=lambda n=n: kept.update({n: ctx.artifact(f"part {n}", n)})) for n in range(input)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [kept[n] for n in range(input)]


@job("steps")
def steps(ctx, input):
    return ctx.step("draw", lambda: {"drawn": input})


@job("effects")
def effects(ctx, input):
    def send(key):
        if input == "fails":
            raise EffectFailed("refused", retryable=False, retry_after_seconds=3)
        if input == "breaks":
            raise ValueError("connection lost")
        return object() if input == "answers no JSON" else {"key": key}

    lookup = None if input == "no lookup" else lambda key: {**ctx.input, "response": {"asked": key}}
    return ctx.effect("charge", "reconcilable", {"cents": 5}, send, lookup)


@job("polls")
def polls(ctx, input):
    ctx.progress(0)
    while not ctx.cancelled:
        time.sleep(0.005)
    return {"reason": ctx.cancelled.reason}


@job("waits")
def waits(ctx, input):
    ctx.progress(0)
    return {"cancelled": ctx.cancelled.wait(input), "reason": ctx.cancelled.reason}


@job("checks")
def checks(ctx, input):
    ctx.progress(0)
    while True:
        ctx.check()
        time.sleep(0.005)


@job("sleeps_async")
async def sleeps_async(ctx, input):
    ctx.progress(0)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        ctx.log.info("cleaning up")
        raise


@job("checks_once")
def checks_once(ctx, input):
    return {"cancelled": bool(ctx.cancelled)}


outliving = threading.Event()


@job("leaves_a_thread")
def leaves_a_thread(ctx, input):
    def speak():
        outliving.wait()
        ctx.log.info("from the past")
        ctx.progress(0.5)
        try:
            ctx.artifact("late", 1)
        except OracleError as error:
            print(error, bool(ctx.cancelled), ctx.cancelled.reason)

    threading.Thread(target=speak).start()
    return "left"


@job("wakes_the_thread")
def wakes_the_thread(ctx, input):
    outliving.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    return "woken"


@job("leaves_a_call")
def leaves_a_call(ctx, input):
    def call():
        try:
            ctx.artifact("unanswered", 1)
        except OracleError as error:
            print("in its thread:", error)

    threading.Thread(target=call).start()
    while ctx._link._reading.acquire(blocking=False):  # until the thread waits for its reply
        ctx._link._reading.release()
        time.sleep(0.005)
    return "left"


def say_and_sleep(started):
    started.set()
    time.sleep(60)


@job("forks")
def forks(ctx, input):
    fork = multiprocessing.get_context("fork")
    started = fork.Event()
    child = fork.Process(target=say_and_sleep, args=(started,))
    child.start()
    started.wait()
    child.terminate()
    child.join()
    return child.exitcode


@job("cancels_itself")
async def cancels_itself(ctx, input):
    asyncio.current_task().cancel()
    await asyncio.sleep(1)


run()
