import { expect, it } from "vitest";
import { readRoot, yaml } from "./files.js";

// Which metrics they name is held against a real scrape in test/metrics.test.ts.

interface Rules {
  groups: { name: string; rules: Record<string, unknown>[] }[];
}

it("the alert rules have the form that Prometheus reads, and each says what to do", () => {
  const { groups } = yaml.parse(readRoot("deploy/prometheus-alerts.yaml")) as Rules;
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(0);
  for (const rule of rules) {
    expect(
      Object.keys(rule).filter((key) => !["alert", "expr", "for", "labels", "annotations"].includes(key)),
    ).toEqual([]);
    expect(rule).toMatchObject({
      alert: expect.stringMatching(/^OracleWorker\w+$/),
      expr: expect.stringMatching(/\S/),
      labels: { severity: expect.stringMatching(/^(info|warning|critical)$/) },
      annotations: { summary: expect.any(String), action: expect.any(String) },
    });
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});
