import { defineConfig } from "vitest/config";

/** What takes minutes: run by `.ci/run` after the ordinary tests. */
export default defineConfig({
  test: {
    include: ["test/slow/**/*.test.ts"],
    globalSetup: ["test/support/server.ts"],
    testTimeout: 600_000,
    hookTimeout: 60_000,
    // A poll waits for a condition; how long that takes on a busy machine is not its question.
    expect: { poll: { timeout: 20_000 } },
    // Each file has processes and a database of its own, and mostly waits: for leases, restarts, silence.
    maxWorkers: 2,
  },
});
