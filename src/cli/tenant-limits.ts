import type { Command } from "commander";
import { OracleError } from "../core/errors.js";
import type { Rate, Tenant, TenantLimits } from "../core/tenant.js";
import { accountJson } from "../http/to-json.js";
import { checkTenantId } from "../store/database.js";
import { action, type Call, examples } from "./command.js";
import { wrongValue } from "./errors.js";
import { parseSeconds, parseWholeNumber } from "./parse.js";
import { table } from "./table.js";
import { span } from "./time.js";

interface LimitFlags {
  weight?: number;
  maxRunning?: number | None;
  maxWaiting?: number | None;
  rate?: Rate | None;
  enqueueRate?: Rate | None;
  retention?: number | None;
}

/** Commander takes a null for a value that could not be read. */
type None = "none";

const DAY_SECONDS = 86_400;

/** The part of `tenants` that is about sharing. */
export function registerLimits(tenants: Command): void {
  tenants
    .command("list")
    .description("tenants with their limits, what waits and runs, and what they used")
    .option(
      "--since <span>",
      "counts what was used in this time until now; default: 24h",
      parseSeconds("--since", 1, 3650 * DAY_SECONDS),
      DAY_SECONDS,
    )
    .addHelpText("after", examples("oracle-worker tenants list --since 30d"))
    .action(action(listCommand));
  withLimits(tenants.command("add").description("give a tenant settings of its own"))
    .addHelpText("after", examples("oracle-worker tenants add acme --weight 3"))
    .action(action((call: Call<LimitFlags>, tenant: string) => setCommand(call, tenant, true)));
  withLimits(tenants.command("set").description("change what a tenant may do; what is not given stays"))
    .addHelpText(
      "after",
      examples(
        "oracle-worker tenants set acme --max-running 20 --rate 5/s",
        "oracle-worker tenants set acme --max-waiting 10000 --enqueue-rate 600/m",
        "oracle-worker tenants set acme --max-running none",
      ),
    )
    .action(action((call: Call<LimitFlags>, tenant: string) => setCommand(call, tenant, false)));
}

function withLimits(command: Command): Command {
  return command
    .argument("<tenant>", "the tenant's name")
    .option("--weight <n>", "its share of a queue against the others'", parseWholeNumber("--weight", 1, 1000))
    .option(
      "--max-running <n>",
      "jobs at a time, or none",
      orNone(parseWholeNumber("--max-running", 0, 1_000_000)),
    )
    .option(
      "--max-waiting <n>",
      "jobs that may wait, or none; more are refused",
      orNone(parseWholeNumber("--max-waiting", 0, 1_000_000)),
    )
    .option("--rate <n/s>", "starts: n/s, n/m or n/h, or none", orNone(parseRate("--rate")))
    .option(
      "--enqueue-rate <n/s>",
      "submissions: n/s, n/m or n/h, or none; more are refused",
      orNone(parseRate("--enqueue-rate")),
    )
    .option(
      "--retention <span>",
      "how long finished jobs are kept (30d), or none: as long as everybody's",
      orNone(parseSeconds("--retention", 1, 3650 * DAY_SECONDS)),
    );
}

async function listCommand({ flags, out, withOracle }: Call<{ since: number }>): Promise<void> {
  const items = await withOracle((oracle) => oracle.tenants({ sinceSeconds: flags.since }));
  await out.show({ items: items.map(tenantJson), next: null }, () =>
    items.length === 0 ? "No tenants." : tenantTable(items),
  );
}

async function setCommand(call: Call<LimitFlags>, tenant: string, mustBeNew: boolean): Promise<void> {
  const { flags, out, withOracle } = call;
  const limits = toLimits(flags);
  checkTenantId(tenant);
  if (!mustBeNew && Object.keys(limits).length === 0) {
    throw new OracleError("INVALID_ARGUMENT", "Nothing to set: give at least one limit.", {
      field: "tenant",
    });
  }
  const settings = await withOracle((oracle) =>
    mustBeNew ? oracle.addTenant(tenant, limits) : oracle.setTenant(tenant, limits),
  );
  await out.show(limitsJson(tenant, settings), () => `Tenant ${tenant}: ${describe(settings)}`);
}

function toLimits(flags: LimitFlags): Partial<TenantLimits> {
  const given = {
    weight: flags.weight,
    maxRunning: flags.maxRunning,
    maxWaiting: flags.maxWaiting,
    startRate: flags.rate,
    enqueueRate: flags.enqueueRate,
    retentionSeconds: flags.retention,
  };
  const wanted = Object.entries(given).filter(([, value]) => value !== undefined);
  return Object.fromEntries(wanted.map(([name, value]) => [name, value === "none" ? null : value]));
}

function limitsJson(tenant: string, limits: TenantLimits) {
  return {
    tenant_id: tenant,
    weight: limits.weight,
    max_running: limits.maxRunning,
    max_waiting: limits.maxWaiting,
    rate: rateText(limits.startRate),
    enqueue_rate: rateText(limits.enqueueRate),
    retention_seconds: limits.retentionSeconds,
  };
}

function tenantJson(tenant: Tenant) {
  return {
    ...limitsJson(tenant.tenantId, tenant),
    created_at: tenant.createdAt,
    ...accountJson(tenant),
  };
}

function tenantTable(tenants: readonly Tenant[]): string {
  return table(tenants, [
    { title: "TENANT", value: ({ tenantId }) => tenantId },
    { title: "WAITING", value: ({ waiting }) => waiting, align: "right" },
    { title: "RUNNING", value: ({ running }) => running, align: "right" },
    { title: "JOBS", value: ({ jobs }) => jobs, align: "right" },
    { title: "SUCCEEDED", value: ({ succeeded }) => succeeded, align: "right" },
    { title: "ATTEMPTS", value: ({ attempts }) => attempts, align: "right" },
    { title: "RUN", value: ({ runSeconds }) => span(runSeconds), align: "right" },
    { title: "TOKENS", value: ({ tokens }) => tokens, align: "right" },
    { title: "COST", value: ({ cost }) => Number(cost.toFixed(4)), align: "right" },
    { title: "BYTES", value: ({ bytes }) => bytes, align: "right" },
    { title: "LIMITS", value: (tenant) => describe(tenant) },
  ]);
}

function describe(limits: TenantLimits): string {
  const { maxRunning, maxWaiting, startRate, enqueueRate, retentionSeconds } = limits;
  return [
    `weight ${limits.weight}`,
    maxRunning === null ? "" : `at most ${maxRunning} running`,
    startRate === null ? "" : `${rateText(startRate)} started`,
    maxWaiting === null ? "" : `at most ${maxWaiting} waiting`,
    enqueueRate === null ? "" : `${rateText(enqueueRate)} submitted`,
    retentionSeconds === null ? "" : `kept for ${span(retentionSeconds)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

const units = { s: 1, m: 60, h: 3600 } as const;

function parseRate(flag: string): (given: string) => Rate {
  return (given) => {
    const [, count, unit] = /^(\d{1,7})\/(s|m|h)$/.exec(given.trim()) ?? [];
    if (Number(count) >= 1 && Number(count) <= 1_000_000) {
      return { count: Number(count), seconds: units[unit as keyof typeof units] };
    }
    throw wrongValue(flag, given, "1 to 1000000 per s, m or h, such as 5/s or 600/m, or none");
  };
}

function rateText(rate: Rate | null): string | null {
  if (!rate) return null;
  const unit = Object.entries(units).find(([, seconds]) => seconds === rate.seconds)?.[0];
  return `${rate.count}/${unit ?? `${rate.seconds}s`}`;
}

function orNone<T>(parse: (given: string) => T): (given: string) => T | None {
  return (given) => (given === "none" ? given : parse(given));
}
