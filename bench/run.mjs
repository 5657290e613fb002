// Starts the benchmark on its own Node: the peers need Node >= 22, Oracle Worker's floor is lower, and
// contestants compared with each other must run on one runtime. Plain JavaScript, so any Node can start it.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const runtime = join(here, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");

if (!existsSync(runtime)) {
  console.error("bench: installing the peers (npm ci in bench/), once …");
  const install = spawnSync("npm", ["ci", "--no-fund", "--no-audit"], { cwd: here, stdio: "inherit" });
  if (install.status !== 0) process.exit(install.status ?? 1);
}

const child = spawn(
  runtime,
  ["--disable-warning=ExperimentalWarning", join(here, "src", "main.ts"), ...process.argv.slice(2)],
  {
    stdio: "inherit",
  },
);
// The terminal sends Ctrl-C to the whole group; the child stops its servers and only then do we end.
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => signal === "SIGTERM" && child.kill(signal));
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
