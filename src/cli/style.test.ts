import { describe, expect, it } from "vitest";
import { printable, terminalText } from "./style.js";

describe("what a terminal is shown", () => {
  it("steers nothing and turns nothing around", () => {
    const hostile = "a\u001b[31mb\u009b\u0007\r\u202ec\u2066";
    expect(printable(hostile)).toBe("a\\x1b[31mb\\x9b\\x07\\x0d\\u202ec\\u2066");
    expect(terminalText(hostile)).toBe(printable(hostile));
  });

  it("is one line, or keeps its lines and tabs", () => {
    expect(printable("one\n  two\tthree")).toBe("one | two\\x09three");
    expect(terminalText("one\n  two\tthree")).toBe("one\n  two\tthree");
  });
});
