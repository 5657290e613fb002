/** The layers of docs/architecture.md, as rules: imports point towards core only. */
const layer = (name, from, allowed) => ({
  name,
  severity: "error",
  from: { path: from, pathNot: "\\.test\\.ts$" },
  to: { path: "^src/", pathNot: allowed },
});

module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    layer("core-imports-nothing", "^src/core/", ["^src/core/"]),
    layer("store-on-core", "^src/store/", ["^src/(core|store)/"]),
    layer("handlers-on-core", "^src/handlers/", ["^src/(core|handlers)/"]),
    layer("artifacts-on-core", "^src/artifacts/", ["^src/(core|artifacts)/"]),
    layer("embedded-on-core", "^src/embedded/", ["^src/(core|embedded)/"]),
    layer("dispatch-on-core", "^src/dispatch/", ["^src/(core|dispatch)/"]),
    layer("observe-on-core", "^src/observe/", ["^src/(core|observe)/"]),
    layer("worker-on-store-and-handlers", "^src/worker/", ["^src/(core|store|handlers|artifacts|worker)/"]),
    layer("evolution-on-worker", "^src/evolution/", [
      "^src/(core|store|handlers|worker|evolution)/",
      "^src/[a-z-]+\\.ts$",
    ]),
    {
      name: "web-on-the-client",
      comment: "The dashboard knows the server by its client, and what is as pure as the states' names.",
      severity: "error",
      from: { path: "^web/" },
      to: { path: "^src/", pathNot: ["^src/http/client\\.ts$", "^src/core/states\\.ts$"] },
    },
    {
      name: "driver-in-store-only",
      comment: "Only the store speaks to Postgres.",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/store/", "\\.test\\.ts$"] },
      to: { path: "node_modules/pg/" },
    },
    {
      name: "nothing-imports-the-cli",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/cli/" },
      to: { path: "^src/cli/" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "node", "default"],
    },
  },
};
