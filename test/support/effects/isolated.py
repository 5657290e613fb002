import os
import signal
import time
from threading import Event, Thread

from oracle_worker import job, run


@job("python plan")
@job("python")
def act(ctx, input):
    how = input["how"]
    if how == "leaves a step open":
        begun = Event()
        slow = lambda: begun.set() or time.sleep(0.5)
        Thread(target=ctx.step, args=("slow", slow), daemon=True).start()
        begun.wait()
        return "gone"
    if how == "names an artifact 5":
        return ctx.artifact(5, "hello")
    if how == "keeps much":
        text = 'é😀"\\' * input["times"]
        size = ctx.artifact("large.txt", text)["size"]
        kept = ctx.artifact("large.bin", text.encode())["size"]
        remembered = ctx.step("large", lambda: text)
        return {"size": size, "bytes": kept, "same": remembered == text}
    drawn = ctx.step("draw", lambda: {"attempt": ctx.attempt_no})
    mail = {"name": "mail", "kind": input.get("kind", "idempotent"), "request": {"to": "ada"}}
    if how == "plans":
        ctx.plan([mail])

    def send(key):
        if how == "dies" and ctx.attempt_no == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"idempotencyKey": key, "attempt": ctx.attempt_no}

    sent = ctx.effect(mail["name"], mail["kind"], mail["request"], send)
    if how == "commits":
        ctx.on_commit("note", "INSERT INTO public.notes VALUES ($1)", [ctx.job_type])
    if how == "commits twice":
        for sql in ("SELECT 1", "SELECT 2"):
            ctx.on_commit("note", sql)
    if how == "fails once" and ctx.attempt_no == 1:
        raise ValueError("once more")
    return {"drawn": drawn, "sent": sent}


run()
