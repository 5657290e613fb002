"""The trivial job that RQ runs."""


def trivial(n):
    return {"ok": True, "n": n}
