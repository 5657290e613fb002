import { createServer } from "node:net";

/** The preferred port (0: none) if nothing else has it, or any free one. */
export async function freePort(preferred: number): Promise<number> {
  return listen(preferred).catch(() => listen(0));
}

function listen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address !== null
          ? resolve(address.port)
          : reject(new Error("The system named no port.")),
      );
    });
  });
}
