export interface ServerEvent {
  id: string;
  event: string;
  data: unknown;
}

const RECONNECT_MS = 1_000;

/**
 * Reads server-sent events over fetch, which unlike EventSource can send a token. When the connection breaks it
 * asks again from the last event on; it ends after the event `end`.
 */
export async function* readEvents(
  connect: (lastEventId: string | undefined) => Promise<Response>,
  lastEventId: string | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent> {
  let resumeAt = lastEventId;
  let response = await connect(resumeAt);
  for (;;) {
    // Nothing more will come: the last event seen was the end.
    if (response.status === 204 || !response.body) return;
    try {
      for await (const event of parse(response.body)) {
        resumeAt = event.id;
        yield event;
        if (event.event === "end") return;
      }
    } catch (error) {
      if (signal?.aborted) throw error;
    }
    response = await reconnect(() => connect(resumeAt), signal);
  }
}

/** Tries until the server is back; what it refuses for good is thrown. */
async function reconnect(
  connect: () => Promise<Response>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    try {
      return await connect();
    } catch (error) {
      const { status } = error as { status?: number };
      if (signal?.aborted || (status !== undefined && status < 500)) throw error;
    }
  }
}

async function* parse(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Comments, which keep the connection alive, have no event. */
function parseBlock(block: string): ServerEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) fields.set(name, value);
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { id: fields.get("id") ?? "", event: fields.get("event") ?? "message", data: JSON.parse(data) };
}
