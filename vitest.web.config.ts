import { defineConfig } from "vitest/config";

/** The dashboard in a real Chromium: run by `.ci/run` after the ordinary tests. */
export default defineConfig({
  test: {
    include: ["test/web/**/*.test.ts"],
    globalSetup: ["test/support/server.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
