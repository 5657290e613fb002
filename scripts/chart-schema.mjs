// Writes charts/oracle-worker/values.schema.json: the settings from their table, the rest as it stands here.
// With --check it only tells whether the file is up to date. Needs a build.
import { readFileSync, writeFileSync } from "node:fs";
import { settingsTable } from "../dist/core/settings.js";

const file = new URL("../charts/oracle-worker/values.schema.json", import.meta.url);

const object = (properties, more = {}) => ({
  type: "object",
  additionalProperties: false,
  properties,
  ...more,
});
const text = { type: "string" };
const flag = { type: "boolean" };
const count = (minimum = 0) => ({ type: "integer", minimum });
const anyObject = { type: "object" };
const anyList = { type: "array" };
const port = { type: "integer", minimum: 1, maximum: 65535 };

const settings = object(
  Object.fromEntries(
    Object.entries(settingsTable).map(([name, { about, right, schema = {} }]) => [
      name,
      { description: `${about} (${right})`, ...schema },
    ]),
  ),
);
const secret = object({ name: text, key: text });
const program = { env: { $ref: "#/definitions/settings" }, resources: anyObject, podAnnotations: anyObject };
const scheduling = { nodeSelector: anyObject, tolerations: anyList, affinity: anyObject };

const schema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "Values of the chart oracle-worker",
  ...object({
    global: anyObject,
    image: object({ repository: { ...text, minLength: 1 }, tag: text, pullPolicy: text }),
    imagePullSecrets: anyList,
    env: { $ref: "#/definitions/settings" },
    databaseSecret: object({ name: text, key: text, directKey: text, redisKey: text }),
    migration: object({
      enabled: flag,
      databaseUrl: text,
      databaseSecret: secret,
      grantTo: text,
      activeDeadlineSeconds: count(1),
      resources: anyObject,
    }),
    worker: object({
      replicas: count(),
      handlers: text,
      processes: { type: "integer", minimum: 1, maximum: 256 },
      ...program,
      ...scheduling,
      extraVolumes: anyList,
      extraVolumeMounts: anyList,
    }),
    server: object({
      enabled: flag,
      replicas: count(),
      port,
      ...program,
      ...scheduling,
      ingress: object({ enabled: flag, className: text, host: text, tlsSecret: text }),
    }),
    autoscaling: object({
      kind: { enum: ["none", "hpa", "keda"] },
      minReplicas: count(),
      maxReplicas: count(1),
      readyJobsPerReplica: count(1),
      queues: { type: "array", items: text },
      prometheusAddress: text,
    }),
    podDisruptionBudget: object({ enabled: flag, maxUnavailable: { type: ["integer", "string"] } }),
    networkPolicy: object({ enabled: flag, serverFrom: anyList, metricsFrom: anyList, egress: anyList }),
    artifacts: object({ persistentVolumeClaim: text, sizeLimit: text }),
    tmpSizeLimit: text,
    serviceAccount: object({ create: flag, name: text, annotations: anyObject }),
  }),
  definitions: { settings },
};

const wanted = `${JSON.stringify(schema, null, 2)}\n`;
if (!process.argv.includes("--check")) writeFileSync(file, wanted);
else if (readFileSync(file, "utf8") !== wanted) {
  console.error("values.schema.json is not what the settings say: npm run chart:schema");
  process.exitCode = 1;
}
