import { defineConfig } from "vitest/config";

/** Container files and chart: run by `.ci/run`, which installs what they need besides (test/deploy/package.json). */
export default defineConfig({
  test: {
    include: ["test/deploy/*.test.ts"],
    globalSetup: ["test/support/server.ts"],
    testTimeout: 300_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
  },
});
