import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, yaml } from "./files.js";

const place = mkdtempSync(join(tmpdir(), "oracle-worker-chart-"));
const renderer = join(place, "render");
const chart = `${root}charts/oracle-worker`;

/** Go and the template functions come from Debian's packages; no module is fetched. */
export function buildRenderer(): void {
  const env = {
    ...process.env,
    GO111MODULE: "off",
    GOPATH: "/usr/share/gocode",
    GOCACHE: join(place, "cache"),
  };
  execFileSync("go", ["build", "-o", renderer, `${root}test/deploy/render.go`], { env });
}

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind; each is checked against its schema.
  [part: string]: any;
}

/** The chart's objects with these values, or what it says against them. */
export function render(values: object): { objects: KubernetesObject[]; refused: string } {
  const file = join(place, "values.yaml");
  writeFileSync(file, JSON.stringify(values));
  const { stdout, stderr, status } = spawnSync(renderer, [chart, "demo", file], { encoding: "utf8" });
  const documents = status === 0 ? yaml.parseAllDocuments(stdout) : [];
  for (const { errors } of documents) if (errors[0]) throw errors[0];
  const objects = documents.map((each) => each.toJS()).filter((each) => each !== null);
  return { objects: objects as KubernetesObject[], refused: stderr };
}

const ours = createRequire(new URL("./package.json", import.meta.url));

type Validator = ((object: unknown) => boolean) & { errors?: { instancePath: string; keyword: string }[] };

/**
 * What Kubernetes would say against an object: parts of the wrong type, parts that are missing, and parts it does not
 * know. The library's validators pass over the last; they are those that a validator never looked at.
 */
export function faultsOf(object: KubernetesObject): string[] {
  const kinds = ours(`kubernetes-models/${object.apiVersion}`) as Record<string, unknown>;
  const definition = Object.keys(kinds).find(
    (name) => name.startsWith("Io") && kinds[name] === kinds[object.kind],
  );
  if (definition === undefined) return [`${object.apiVersion} ${object.kind} is not known`];
  const { validate } = ours(`./node_modules/kubernetes-models/_schemas/${definition}.js`) as {
    validate: Validator;
  };
  const seen = new Set<string>();
  validate(watched(object, "", seen));
  const wrong = (validate.errors ?? []).map(({ instancePath, keyword }) => `${instancePath}: ${keyword}`);
  return [...wrong, ...paths(object, "").filter((path) => !seen.has(path))];
}

function watched(value: unknown, path: string, seen: Set<string>): unknown {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get(target, name) {
      const part = Reflect.get(target, name);
      if (typeof name === "symbol" || !Object.hasOwn(target, name)) return part;
      seen.add(`${path}/${name}`);
      return watched(part, `${path}/${name}`, seen);
    },
  });
}

function paths(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [
    `${path}/${name}`,
    ...paths(part, `${path}/${name}`),
  ]);
}
