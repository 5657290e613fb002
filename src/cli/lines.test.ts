import { describe, expect, it } from "vitest";
import { readLines } from "./lines.js";

async function read(chunks: (string | Buffer)[], maxBytes = 100): Promise<string[]> {
  async function* source() {
    for (const chunk of chunks) yield Buffer.from(chunk as string);
  }
  const lines: string[] = [];
  for await (const line of readLines(source(), maxBytes))
    lines.push(`${line.number}:${line.text}@${line.bytesRead}`);
  return lines;
}

describe("lines of a stream", () => {
  it("do not depend on where its chunks end", async () => {
    const whole = ["1:ab@3", "2:@4", "3:é@7", "4:c@8"];
    expect(await read(["ab\n\né\nc"])).toEqual(whole);
    const bytes = [...Buffer.from("ab\n\né\nc")].map((byte) => Buffer.from([byte]));
    expect(await read(bytes)).toEqual(whole);
  });

  it("need no newline at the end, and are none in an empty stream", async () => {
    expect(await read(["a"])).toEqual(["1:a@1"]);
    expect(await read(["a\n"])).toEqual(["1:a@2"]);
    expect(await read([])).toEqual([]);
  });

  it("are refused when too long, before the rest is read", async () => {
    await expect(read(["ok\n", "x".repeat(60), "x".repeat(60)])).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
      field: "line 2",
    });
  });

  it("are refused when they are not UTF-8", async () => {
    await expect(read([Buffer.from([0xc3, 0x28])])).rejects.toMatchObject({ code: "INVALID_JSON" });
  });
});
