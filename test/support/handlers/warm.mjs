// A warm program that behaves as its input says.
import { closeSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const say = (...lines) => writeSync(1, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
let request;
const answer = (result) => say({ attempt_id: request.attempt_id, ok: true, result });

const behaviours = {
  good: () => answer("good"),
  pid: () => setTimeout(() => answer(process.pid), request.input.ms ?? 0),
  two: () => {
    const { attempt_id } = request;
    say({ attempt_id, ok: true, result: 1 }, { attempt_id, ok: true, result: 2 });
  },
  lateSecond: () => {
    const late = request;
    answer(process.pid);
    setTimeout(() => say({ attempt_id: late.attempt_id, ok: true, result: 2 }), 100);
  },
  otherAttempt: () => say({ attempt_id: "somebody", ok: true, result: 1 }),
  plain: () => say({ ok: true, result: "without an id" }),
  say: () => writeSync(1, request.input.stdout),
  exit: () => process.exit(request.input.code),
  flood: () => writeSync(1, "x".repeat(2 << 20)),
  closeStdout: () => closeSync(1),
  messages: () =>
    say(
      { progress: { fraction: 0.5, message: "half" } },
      { log: { level: "warn", message: "hm", fields: { n: 1 } } },
      { artifact: { id: 7, name: "note", media_type: "text/plain", text: "kept" } },
    ),
  /** Sends them all before it hears of the first. */
  artifacts: () => {
    for (let id = 1; id <= request.input.count; id++)
      say({ artifact: { id, name: `n${id}`, text: "x".repeat(200_000) } });
  },
  stderr: () => {
    writeSync(2, `of ${request.input.n}`);
    answer(null);
  },
  /** Ends when told to. */
  heed: () => {},
  ignore: () => process.on("SIGTERM", () => {}),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.cancel && request.input.how === "heed") {
    say({ ok: false, error: { class: "Stopped", message: message.cancel.reason, retryable: true } });
  } else if (message.reply < request?.input.count) return;
  else if (message.reply) answer(message);
  else if (!message.cancel) {
    request = message;
    behaviours[request.input.how]();
  }
});
