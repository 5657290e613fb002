import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/slow/**", "test/deploy/**", "test/web/**", "**/node_modules/**"],
    globalSetup: ["test/support/server.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A poll waits for a condition; how long that takes on a busy machine is not its question.
    expect: { poll: { timeout: 20_000 } },
    // Files share one Postgres on a small machine; two at a time keep its cores busy.
    maxWorkers: 2,
  },
});
