"""The trivial job that Oracle Worker runs, in a warm process or in one of its own."""
from oracle_worker import job, run


@job("bench")
def trivial(context, input):
    return {"ok": True, "n": input["n"]}


run()
