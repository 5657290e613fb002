import { execFileSync } from "node:child_process";
import { Ajv } from "ajv";
import { beforeAll, describe, expect, it } from "vitest";
import { runAsPerson } from "../support/cli.js";
import { buildRenderer, faultsOf, type KubernetesObject, render } from "./chart.js";
import { readRoot, root, yaml } from "./files.js";

const database = "postgresql://app:app-password@db:5432/oracle";

/** One set of values for each way in which the chart is used. */
const uses: Record<string, object> = {
  "an address": { env: { DATABASE_URL: database } },
  "a secret": {
    databaseSecret: { name: "oracle", directKey: "direct", redisKey: "redis" },
    migration: { databaseSecret: { name: "oracle-admin", key: "url" }, grantTo: "app" },
    artifacts: { persistentVolumeClaim: "artifacts" },
    serviceAccount: { create: false },
  },
  everything: {
    image: { repository: "registry.example/oracle-worker", tag: "1.2.3" },
    imagePullSecrets: [{ name: "pull" }],
    env: {
      DATABASE_URL: database,
      DIRECT_DATABASE_URL: `${database}?direct=1`,
      REDIS_URL: "redis://redis:6379/0",
      SHUTDOWN_GRACE: "2m",
      QUEUES: ["docs", "bulk"],
      CONCURRENCY: 50,
    },
    migration: {
      databaseUrl: "postgresql://admin:admin-password@db/oracle",
      resources: { limits: { cpu: "1" } },
    },
    worker: {
      handlers: "/srv/handlers",
      env: { LOG_LEVEL: "debug" },
      nodeSelector: { pool: "jobs" },
      tolerations: [{ key: "jobs", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
      podAnnotations: { "example.org/note": "yes" },
      extraVolumes: [{ name: "handlers", configMap: { name: "handlers" } }],
      extraVolumeMounts: [{ name: "handlers", mountPath: "/srv/handlers" }],
    },
    server: { ingress: { enabled: true, className: "nginx", host: "jobs.example", tlsSecret: "tls" } },
    autoscaling: { kind: "hpa", maxReplicas: 20 },
    networkPolicy: {
      metricsFrom: [{ namespaceSelector: { matchLabels: { name: "monitoring" } } }],
      serverFrom: [{ podSelector: {} }],
      egress: [{ ports: [{ protocol: "TCP", port: 5432 }] }],
    },
  },
  "the least": {
    env: { DATABASE_URL: database },
    migration: { enabled: false },
    server: { enabled: false },
    podDisruptionBudget: { enabled: false },
    networkPolicy: { enabled: false },
  },
};

const rendered = new Map<string, KubernetesObject[]>();
const objectsOf = (use: string) => rendered.get(use) as KubernetesObject[];
const find = (use: string, kind: string, suffix = "") =>
  objectsOf(use).find((object) => object.kind === kind && object.metadata.name.endsWith(suffix));
const podOf = (object: KubernetesObject | undefined) => object?.spec.template.spec;
const workloads = () =>
  Object.keys(uses).flatMap((use) =>
    objectsOf(use).filter(({ kind }) => ["Deployment", "Job"].includes(kind)),
  );
const check = new Ajv({ strict: false }).compile(
  JSON.parse(readRoot("charts/oracle-worker/values.schema.json")),
);

beforeAll(() => {
  buildRenderer();
  for (const [use, values] of Object.entries(uses)) {
    const { objects, refused } = render(values);
    expect(refused).toBe("");
    rendered.set(use, objects);
  }
});

describe("the chart's values", () => {
  it("have a schema that follows from the settings", () => {
    execFileSync(process.execPath, [`${root}scripts/chart-schema.mjs`, "--check"]);
  });

  it("pass the schema, as they stand and in every use", () => {
    const standing = yaml.parse(readRoot("charts/oracle-worker/values.yaml"));
    for (const values of [standing, ...Object.values(uses)]) {
      check(values);
      expect(check.errors ?? []).toEqual([]);
    }
  });

  it.each([
    [{ env: { CONCURENCY: 5 } }, "unknown setting"],
    [{ env: { LOG_LEVEL: "loud" } }, "wrong word"],
    [{ env: { SHUTDOWN_GRACE: "soon" } }, "no duration"],
    [{ env: { CONCURRENCY: 0 } }, "too small"],
    [{ env: { DATABASE_URL: "mysql://db" } }, "other database"],
    [{ worker: { replica: 3 } }, "unknown value"],
    [{ autoscaling: { kind: "vpa" } }, "unknown kind"],
  ])("%j are refused: %s", (values: object, _why: string) => {
    expect(check(values)).toBe(false);
  });

  it.each([
    [{}, "No database: set env.DATABASE_URL, or databaseSecret.name"],
    [{ env: { DATABASE_URL: database, HEALTH_PORT: 0 } }, "env.HEALTH_PORT must not be 0"],
    [{ env: { DATABASE_URL: database, SHUTDOWN_GRACE: "3w" } }, "is no duration"],
    [{ env: { DATABASE_URL: database }, autoscaling: { kind: "keda" } }, "autoscaling.prometheusAddress"],
    [{ env: { DATABASE_URL: database }, server: { ingress: { enabled: true } } }, "server.ingress.host"],
  ])("%j stop the templates: %s", (values, message) => {
    expect(render(values).refused).toContain(message);
  });
});

describe("the chart's objects", () => {
  it("are what Kubernetes knows", () => {
    for (const use of Object.keys(uses))
      for (const object of objectsOf(use))
        expect(faultsOf(object), `${use}: ${object.kind} ${object.metadata.name}`).toEqual([]);
    const odd = structuredClone(find("an address", "Deployment", "-worker") as KubernetesObject);
    odd.spec.template.spec.containers[0].imagee = "typo";
    odd.spec.replicas = "two";
    expect(faultsOf(odd)).toEqual(["/spec/replicas: type", "/spec/template/spec/containers/0/imagee"]);
  });

  it("run commands with flags that exist", async () => {
    const overview = (await runAsPerson(["--help"])).stdout;
    for (const container of workloads().flatMap((each) => podOf(each).containers)) {
      const [command, ...words] = container.args as string[];
      if (command === "serve" && !/^ {2}serve/m.test(overview)) continue;
      const { stdout } = await runAsPerson([command as string, "--help"]);
      for (const flag of words.filter((word) => word.startsWith("--"))) expect(stdout).toContain(`${flag} `);
    }
  });

  it("have no more power than they need", () => {
    for (const each of workloads()) {
      const pod = podOf(each);
      expect(pod.automountServiceAccountToken).toBe(false);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 10001,
        seccompProfile: { type: "RuntimeDefault" },
      });
      for (const container of [...pod.containers, ...(pod.initContainers ?? [])]) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(container.volumeMounts).toContainEqual({ name: "tmp", mountPath: "/tmp" });
      }
    }
    expect(find("an address", "ServiceAccount")?.automountServiceAccountToken).toBe(false);
  });

  it("keep passwords out of pods' descriptions", () => {
    for (const use of Object.keys(uses))
      for (const object of objectsOf(use).filter(({ kind }) => kind !== "Secret"))
        expect(JSON.stringify(object)).not.toContain("-password");
    const env = podOf(find("a secret", "Deployment", "-worker")).containers[0].env;
    expect(env).toContainEqual({
      name: "DIRECT_DATABASE_URL",
      valueFrom: { secretKeyRef: { name: "oracle", key: "direct" } },
    });
    expect(find("a secret", "Secret")).toBeUndefined();
    expect(find("everything", "Secret")?.stringData).toMatchObject({ DATABASE_URL: database });
  });

  it("give workers time to end, and settings by name", () => {
    const usual = podOf(find("an address", "Deployment", "-worker"));
    expect(usual.terminationGracePeriodSeconds).toBe(45);
    expect(usual.containers[0].env).toContainEqual({ name: "STRICT_ROLES", value: "1" });
    const other = podOf(find("everything", "Deployment", "-worker"));
    expect(other.terminationGracePeriodSeconds).toBe(135);
    expect(other.containers[0].image).toBe("registry.example/oracle-worker:1.2.3");
    expect(other.containers[0].env).toContainEqual({ name: "QUEUES", value: "docs,bulk" });
    expect(other.containers[0].env).toContainEqual({ name: "CONCURRENCY", value: "50" });
    expect(other.containers[0].env).toContainEqual({ name: "LOG_LEVEL", value: "debug" });
  });

  it("migrate before anything else, with their own login", () => {
    for (const use of ["an address", "a secret", "everything"])
      expect(find(use, "Job")?.metadata.annotations?.["helm.sh/hook"]).toBe("pre-install,pre-upgrade");
    const weights = ["Secret", "Job"].map((kind) =>
      Number(find("everything", kind)?.metadata.annotations?.["helm.sh/hook-weight"]),
    );
    expect(weights[0]).toBeLessThan(weights[1] as number);
    const { initContainers, containers } = podOf(find("a secret", "Job"));
    expect(initContainers[0].args).toEqual(["migrate"]);
    expect(containers[0].args).toEqual(["migrate", "roles", "--login", "app"]);
    expect(containers[0].env[0].valueFrom.secretKeyRef).toEqual({ name: "oracle-admin", key: "url" });
    expect(podOf(find("everything", "Job")).containers[0].env[0].valueFrom.secretKeyRef.key).toBe(
      "MIGRATION_DATABASE_URL",
    );
  });

  it("are probed where they answer", () => {
    const [worker] = podOf(find("an address", "Deployment", "-worker")).containers;
    const [server] = podOf(find("an address", "Deployment", "-server")).containers;
    for (const [container, port] of [
      [worker, { name: "health", containerPort: 9464 }],
      [server, { name: "http", containerPort: 8080 }],
    ]) {
      expect(container.ports).toEqual([port]);
      expect(container.startupProbe.httpGet).toEqual({ path: "/healthz", port: port.name });
      expect(container.livenessProbe.httpGet).toEqual({ path: "/healthz", port: port.name });
      expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: port.name });
    }
    expect(worker.env).toContainEqual({ name: "HEALTH_PORT", value: "9464" });
  });

  it("scale with what waits, and leave the count to whoever scales", () => {
    const scaler = find("everything", "HorizontalPodAutoscaler");
    expect(scaler?.spec.metrics.map((each: KubernetesObject) => each.external.metric)).toEqual([
      { name: "oracle_queue_ready_jobs", selector: { matchLabels: { queue: "docs" } } },
      { name: "oracle_queue_ready_jobs", selector: { matchLabels: { queue: "bulk" } } },
    ]);
    expect(find("everything", "Deployment", "-worker")?.spec.replicas).toBeUndefined();
    expect(find("an address", "Deployment", "-worker")?.spec.replicas).toBe(2);
    const keda = { kind: "keda", prometheusAddress: "http://prometheus:9090" };
    const { objects } = render({ env: { DATABASE_URL: database, QUEUES: "a,b" }, autoscaling: keda });
    const scaled = objects.find(({ kind }) => kind === "ScaledObject");
    expect(scaled?.spec.triggers[0].metadata.query).toBe(
      'sum(max by (queue) (oracle_queue_ready_jobs{queue=~"a|b"}))',
    );
  });

  it("survive a drain of nodes and let nobody in by other doors", () => {
    for (const part of ["-worker", "-server"])
      expect(find("an address", "PodDisruptionBudget", part)?.spec.maxUnavailable).toBe(1);
    const { ingress, egress, policyTypes } = find("everything", "NetworkPolicy")?.spec ?? {};
    expect(ingress.map((rule: KubernetesObject) => rule.ports[0].port)).toEqual([9464, 8080]);
    expect(policyTypes).toEqual(["Ingress", "Egress"]);
    expect(egress[1]).toEqual({ ports: [{ protocol: "TCP", port: 5432 }] });
    expect(
      objectsOf("the least")
        .map(({ kind }) => kind)
        .sort(),
    ).toEqual(["Deployment", "Secret", "ServiceAccount"]);
  });
});
