import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type Check, ok, warn } from "./check.js";

const ANSWER_MS = 3_000;

/** Where REDIS_URL is set, somebody answers there. Without Redis jobs run all the same, woken by the database. */
export const redis: Check = {
  name: "Redis",
  async examine({ settings }) {
    if (settings.REDIS_URL === undefined) return [];
    const why = await ping(new URL(settings.REDIS_URL));
    if (why === undefined) return ok("answers");
    const message = `Redis does not answer (${why}); NOTIFY and polling stand in for it`;
    return [warn(message, "start it, correct REDIS_URL, or leave REDIS_URL out")];
  },
};

/** Speaks just enough of the protocol itself: the client library is not part of every installation. */
function ping(url: URL): Promise<string | undefined> {
  const place = { host: url.hostname, port: Number(url.port || 6379) };
  const socket: Socket = url.protocol === "rediss:" ? connectTls(place) : connectPlain(place);
  return new Promise<string | undefined>((resolve) => {
    let answer = "";
    socket.setEncoding("utf8").setTimeout(ANSWER_MS, () => resolve(`no answer within ${ANSWER_MS / 1000} s`));
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on("close", () => resolve("the connection was closed"));
    socket.on("data", (chunk: string) => {
      answer += chunk;
      const refusal = /^-(.*)\r\n/m.exec(answer)?.[1];
      if (refusal !== undefined) resolve(refusal);
      else if (answer.includes("+PONG\r\n")) resolve(undefined);
    });
    socket.write(login(url) + command("PING"));
  }).finally(() => socket.destroy());
}

function login({ username, password }: URL): string {
  if (password === "") return "";
  const words = [username, password].filter((word) => word !== "").map(decodeURIComponent);
  return command("AUTH", ...words);
}

const command = (...words: string[]) =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;
