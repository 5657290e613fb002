"""jobs.mjs once more, in Python. Of two jobs one takes its own process with it, the other its worker's."""

import json
import os
import signal
import time
import urllib.request

from oracle_worker import job, run

KINDS = ["idempotent", "reconcilable", "unsafe"]


def post(url, path, body):
    with urllib.request.urlopen(url + path, data=json.dumps(body).encode()) as response:
        return json.load(response)


def is_first(folder, death):
    """True once for each death of a job: the file that says so outlives the process."""
    try:
        os.close(os.open(os.path.join(folder, death), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


@job("order in Python")
def order(ctx, input):
    url, n = input["url"], input["n"]
    victim = os.getpid() if n % 2 else os.getppid()

    def meets(kind, point):
        wanted = {"kind": kind, "point": point} in input["kills"]
        return wanted and is_first(input["deaths"], f"{kind} {point} {n}")

    def die(kind, point):
        if meets(kind, point):
            os.kill(victim, signal.SIGKILL)
            time.sleep(60)  # it dies with its worker

    words = ctx.step("think", lambda: post(url, "/think", {"jobId": ctx.job_id}))["words"]
    responses = {}
    for kind in KINDS:
        die(kind, "intent")
        request = {"order": n, "words": words}

        def send(key):
            die(kind, "before")
            fatal = next((point for point in ("received", "performed") if meets(kind, point)), None)
            call = {"key": key, "kind": kind, "body": request, "pid": victim, "kill": fatal}
            response = post(url, "/send", call)
            die(kind, "after")
            return response

        def look_up(key):
            return post(url, "/lookup", {"key": key})

        responses[kind] = ctx.effect(f"send {kind}", kind, request, send, look_up)
        die(kind, "recorded")
    return responses


run()
