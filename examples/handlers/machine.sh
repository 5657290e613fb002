#!/bin/sh
# examples/handlers/machine.sh: the protocol without any help. One document in, one out, exit code 0 on success.
set -eu

request=$(cat) # not needed here, but a program should read what it is sent
echo "asked with ${#request} characters" >&2 # stderr is the attempt's log

fail() { # message
  printf '{"ok": false, "error": {"class": "ShellError", "message": "%s", "retryable": true}}\n' "$1"
  exit 1
}

kernel=$(uname -s) || fail "uname does not know the kernel"
machine=$(uname -m) || fail "uname does not know the machine"
printf '{"ok": true, "result": {"kernel": "%s", "machine": "%s"}}\n' "$kernel" "$machine"
