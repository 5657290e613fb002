import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const built = here("../dist/web");

/** Beside each file a compressed one, so that the server only has to send it. */
const compressed: Plugin = {
  name: "compressed",
  closeBundle() {
    for (const name of readdirSync(built, { recursive: true, encoding: "utf8" })) {
      if (!/\.(js|css|html|svg)$/.test(name)) continue;
      const file = join(built, name);
      writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
    }
  },
};

export default defineConfig({
  root: here("."),
  plugins: [react(), compressed],
  build: {
    outDir: built,
    emptyOutDir: true,
    // Browsers that know light-dark(); nothing is rewritten for older ones.
    target: ["chrome123", "firefox120", "safari17.5"],
    // A data: address would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
