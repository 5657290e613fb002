import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { safeFileName } from "./file-name.js";

describe("a file's name from somebody else's", () => {
  it.each([
    ["report.pdf", "report.pdf"],
    ["Bericht für März.md", "Bericht für März.md"],
    ["../../etc/passwd", "_.._etc_passwd"],
    ["..\\..\\boot.ini", "_.._boot.ini"],
    ["/etc/passwd", "_etc_passwd"],
    ["C:\\autoexec.bat", "C__autoexec.bat"],
    ["..", "artifact"],
    [".", "artifact"],
    ["", "artifact"],
    ["   ", "artifact"],
    [".bashrc", "bashrc"],
    ["-rf", "rf"],
    ["a\0b", "a_b"],
    ["a\nb\r\u001b[31mc", "a_b__[31mc"],
    ["half \ud800 pair", "half \ufffd pair"],
    // Shown right to left, this ends in .txt.
    ["invoice\u202etxt.exe", "invoice_txt.exe"],
    ["zero\u200bwidth", "zero_width"],
    ["con", "_con"],
    ["NUL.txt", "_NUL.txt"],
    ["com1.log", "_com1.log"],
    ["consent.txt", "consent.txt"],
    ["trailing. . ", "trailing"],
    ['what?*<>|".txt', "what______.txt"],
    ["%2e%2e%2fetc", "%2e%2e%2fetc"],
  ])("%j becomes %j", (name, safe) => {
    expect(safeFileName(name)).toBe(safe);
  });

  it("fits a file system's 255 bytes, cut between characters", () => {
    const safe = safeFileName("😀".repeat(200));
    expect(Buffer.byteLength(safe)).toBe(200);
    expect(safe).toBe("😀".repeat(50));
  });

  it("is always one visible component, and safe already when made safe", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
        const safe = safeFileName(name);
        expect(safe).toMatch(/^[^/\\\p{Cc}\p{Cf}.-][^/\\\p{Cc}\p{Cf}]*$/u);
        expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(201);
        expect(safeFileName(safe)).toBe(safe);
      }),
      { numRuns: 2000 },
    );
  });
});
