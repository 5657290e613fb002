import { defineConfig } from "vitest/config";

/** The dashboard in a real Chromium: run by `.ci/run` after the ordinary tests. */
export default defineConfig({
  test: {
    include: ["test/web/**/*.test.ts"],
    globalSetup: ["test/support/server.ts"],
    // A browser, a server, a database and workers share what the machine has.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    fileParallelism: false,
  },
});
