import { describe, expect, test } from "vitest";
import { parseEdits } from "./edits.js";

const block = (search: string[], replace: string[]) =>
  ["<<<<<<< SEARCH", ...search, "=======", ...replace, ">>>>>>> REPLACE"].join("\n");

describe("search/replace blocks", () => {
  test("are found between other words, with or without fences, several for a file", () => {
    const text = [
      "I will change two files.",
      "",
      "src/a.js",
      "```js",
      block(["one", "two"], ["three"]),
      "```",
      "",
      block(["four"], []),
      "And now the other:",
      "src/b with space.js",
      block([], ["new"]),
    ].join("\n");
    expect(parseEdits(text)).toEqual([
      { path: "src/a.js", search: "one\ntwo\n", replace: "three\n" },
      { path: "src/a.js", search: "four\n", replace: "" },
      { path: "src/b with space.js", search: "", replace: "new\n" },
    ]);
  });

  test("may come with the line ends of another system", () => {
    const text = `a.js\n${block(["x"], ["y"])}`.replaceAll("\n", "\r\n");
    expect(parseEdits(text)).toEqual([{ path: "a.js", search: "x\n", replace: "y\n" }]);
  });

  test.each([
    "`d.txt`",
    "`d.txt`:",
    "d.txt:",
    "**d.txt**",
    "**d.txt:**",
    "**`d.txt`**:",
    "*d.txt*",
    "### `d.txt`",
    "  `d.txt`  ",
  ])("name their file also as %j", (line) => {
    expect(parseEdits(`${line}\n${block([], ["x"])}`)).toEqual([
      { path: "d.txt", search: "", replace: "x\n" },
    ]);
  });

  test.each(["__init__.py", "src/[...slug]/a*b.js", "#1.txt", "a:b"])(
    "leave the path %j as it is",
    (path) => {
      expect(parseEdits(`${path}\n${block([], ["x"])}`)[0]?.path).toBe(path);
    },
  );

  test.each([
    ["a path among words", `In \`d.txt\` I change:\n${block([], ["x"])}`, "nothing but the path"],
    ["two paths", `\`a.txt\` and \`b.txt\`\n${block([], ["x"])}`, "nothing but the path"],
    ["half a bold path", `**d.txt\n${block([], ["x"])}`, "nothing but the path"],
    ["no block", "just words", "begins with <<<<<<< SEARCH"],
    ["no path", block(["x"], ["y"]), "has no line with the file's path"],
    ["no end", "a.js\n<<<<<<< SEARCH\nx\n=======\ny", "is not closed"],
    ["no middle", "a.js\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE", "is not closed"],
    ["binary data", `a.js\n${block(["x"], ["\0"])}`, "binary"],
    ["10 MB", `a.js\n${block(["x"], ["y".repeat(10_000_000)])}`, "at most 1048576"],
  ])("with %s are refused", (_what, text, message) => {
    expect(() => parseEdits(text)).toThrow(
      expect.objectContaining({ code: "EVOLUTION_EDITS", message: expect.stringContaining(message) }),
    );
  });
});
