#!/usr/bin/env node
// A one-shot program that behaves as its input says.
import { appendFileSync, closeSync, readFileSync, writeSync } from "node:fs";

const { input, attempt_id } = JSON.parse(readFileSync(0, "utf8"));
const answer = (result) => console.log(JSON.stringify({ attempt_id, ok: true, result }));
const stay = () => setInterval(() => {}, 1000);
if (input.file) appendFileSync(input.file, `${process.pid}\n`);

const behaviours = {
  good: () => answer("good"),
  /** Writes and ends exactly as told. */
  say: () => {
    if (input.stderr) writeSync(2, input.stderr);
    if (input.stdout) writeSync(1, input.stdout);
    if (input.hex) writeSync(1, Buffer.from(input.hex, "hex"));
    process.exit(input.code ?? 0);
  },
  environment: () => answer(Object.keys(process.env).sort()),
  folder: () => answer(process.cwd()),
  stay,
  ignoreTerm: () => {
    process.on("SIGTERM", () => {});
    stay();
  },
  closeStdout: () => {
    answer("and now nothing more");
    closeSync(1);
    stay();
  },
  flood: () => {
    const chunk = Buffer.alloc(1 << 20, "x");
    for (let megabytes = 0; megabytes < input.megabytes; megabytes++) writeAll(input.fd, chunk);
    answer("flooded");
  },
};
behaviours[input.how]();

function writeAll(fd, chunk) {
  for (let rest = chunk; rest.length > 0; ) rest = rest.subarray(writeSync(fd, rest));
}
