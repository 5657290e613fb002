import type { AddressInfo } from "node:net";
import { createServer, connect as dial, type Socket } from "node:net";
import { expect, it } from "vitest";
import { Database } from "../../dist/store/database.js";
import { Listener } from "../../dist/store/listen.js";
import { until, useTestDatabase } from "../support/oracle.js";

// A half-open connection looks healthy and hears nothing. A proxy that stops forwarding makes one.

const db = useTestDatabase();

it("a deaf LISTEN connection notices by itself, and is replaced by one that hears", async () => {
  const target = new URL(db.url);
  const fromServer: Socket[] = [];
  const proxy = createServer((client) => {
    const server = dial(Number(target.port), target.hostname);
    fromServer.push(server);
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const url = new URL(db.url);
  url.hostname = "127.0.0.1";
  url.port = String((proxy.address() as AddressInfo).port);

  const heard: string[] = [];
  const fate: string[] = [];
  const deafened = new Database({ ...db.oracle.db.options, url: url.href });
  const listener = new Listener(deafened, {
    onMessage: (payload) => heard.push(payload),
    onLost: (why) => fate.push(`lost: ${why}`),
    onRestored: () => fate.push("restored"),
  });
  await listener.start();
  await db.sql("SELECT pg_notify('oracle_wake', 'before')");
  await until("the first word", async () => heard.includes("before"));

  for (const server of fromServer) server.unpipe().pause();
  await db.sql("SELECT pg_notify('oracle_wake', 'into the void')");
  await until("the loss and the return", async () => fate.includes("restored"), 60_000);
  expect(fate).toEqual(["lost: it did not hear itself", "restored"]);
  expect(heard).not.toContain("into the void");

  await db.sql("SELECT pg_notify('oracle_wake', 'after')");
  await until("the next word", async () => heard.includes("after"));
  await listener.stop();
  await deafened.close();
  for (const server of fromServer) server.destroy();
  proxy.close();
});
