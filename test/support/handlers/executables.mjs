// For a worker in a process of its own: a program that does not end, and neither does what it starts.
import { defineJob } from "oracle-worker";
import { z } from "zod";

export const stays = defineJob({
  type: "stays",
  input: z.object({ file: z.string(), starts: z.boolean() }),
  output: z.null(),
  executable: [
    process.execPath,
    "-e",
    `const { input } = JSON.parse(require("fs").readFileSync(0, "utf8"));
     const { pid } = input.starts ? require("child_process").spawn("sleep", ["300"]) : process;
     require("fs").writeFileSync(input.file, process.pid + "\\n" + pid + "\\n");
     setInterval(() => {}, 1000);`,
  ],
});
