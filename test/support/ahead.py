"""Handlers for the tests of requests that are sent ahead."""
import ctypes
import os
import sys
import time

from oracle_worker import job, run


@job("ahead")
def behave(ctx, input):
    return globals()[input["how"]](input)


def quick(input):
    return os.getpid()


def note(input):
    with open(input["file"], "a") as notes:
        notes.write(input["name"] + "\n")


def words(input):
    print(f"of {input['n']}", end="", file=sys.stderr)
    os.write(2, b"!")


def hold(input):
    while not os.path.exists(input["until"]):
        time.sleep(0.01)


def hold_the_interpreter(input):
    ctypes.PyDLL(None).usleep(1_500_000)


def die(input):
    os.kill(os.getpid(), 9)


run()
