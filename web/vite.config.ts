import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  plugins: [react()],
  build: {
    outDir: here("../dist/web"),
    emptyOutDir: true,
    // Browsers that know light-dark(); nothing is rewritten for older ones.
    target: ["chrome123", "firefox120", "safari17.5"],
    // A data: address would need a wider content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
