"""A one-shot program that takes more than it should."""
import json
import sys
import time

request = json.load(sys.stdin)
how = request["input"]["how"]
if how == "raise":
    raise ValueError("the model file is gone")
if how == "burn":
    while True:
        pass
if how == "allocate":
    hoard = []
    while True:
        hoard.append(bytearray(1 << 20))
if how == "reserve":
    hoard = bytearray(1 << 30)
if how == "hold":
    hoard = bytearray(b"x") * (request["input"]["megabytes"] << 20)
    time.sleep(60)
print(json.dumps({"ok": True, "result": "good"}))
