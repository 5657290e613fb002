// A warm program that takes requests ahead, behaves as its input says, and notes in a file what it gets and begins.
import { appendFileSync, existsSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const notes = process.argv[2];
const note = (what, { input }) =>
  input.name && appendFileSync(notes, `${what} ${input.name} ${process.pid}\n`);
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const lying = [];
let current;

function answer(result) {
  const { attempt_id } = current;
  current = undefined;
  writeSync(2, `\x1e${attempt_id}\n`);
  say({ attempt_id, ok: true, result });
  setImmediate(next);
}

const behaviours = {
  /** Says how many requests lay behind it. */
  quick: () => answer(lying.length),
  stderr: ({ n }) => {
    writeSync(2, `of ${n}\n\x1enot a mark`);
    answer(lying.length);
  },
  /** Until a file is there. */
  hold: ({ until }) => {
    const timer = setInterval(() => {
      if (!existsSync(until)) return;
      clearInterval(timer);
      answer("held");
    }, 10);
  },
  hog: () => {
    globalThis.hogged = Buffer.alloc(400 << 20, 1);
  },
  otherReturned: () => say({ returned: ["somebody"] }),
};

function next() {
  if (current) return;
  current = lying.shift();
  if (!current) return;
  note("begun", current);
  behaviours[current.input.how](current.input);
}

say({ ahead: 16 });
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.cancel) {
    const place = lying.findIndex(({ attempt_id }) => attempt_id === message.cancel.attempt_id);
    if (place === -1) return;
    lying.splice(place, 1);
    say({ returned: [message.cancel.attempt_id] });
  } else if (message.v) {
    note("got", message);
    lying.push(message);
    setImmediate(next);
  }
});
