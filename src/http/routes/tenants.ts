import { OracleError } from "../../core/errors.js";
import type { Tenant, TenantLimits } from "../../core/tenant.js";
import { setTenant, tenants } from "../../store/tenants.js";
import type { Call, Handlers, Services } from "../call.js";
import { accountJson, isoOrNull } from "../to-json.js";
import type { TenantJson } from "../types.js";

type Tenants = "listTenants" | "addTenant" | "changeTenant";
type Change = Call<"changeTenant">["body"];

/** Whoever is bound to a tenant sees that tenant's limits and use; only somebody who sees all changes them. */
export function tenantRoutes({ db }: Services): Handlers<Tenants> {
  // Read after the change has committed: whoever sets a cap holds back claims until then.
  const set = async (tenantId: string, change: Change, mustBeNew: boolean): Promise<TenantJson> => {
    await db.asEveryTenant((own) => setTenant(own, tenantId, toLimits(change), mustBeNew));
    const all = await db.asEveryTenant((own) => tenants(own));
    const found = all.find((tenant) => tenant.tenantId === tenantId);
    if (!found) throw new OracleError("INTERNAL", "A tenant vanished while it was changed.");
    return tenantJson(found);
  };
  return {
    listTenants: async ({ within }) => ({
      items: (await within((own) => tenants(own))).map(tenantJson),
      next: null,
    }),

    async addTenant({ body: { tenant_id, ...limits }, reply }) {
      const added = await set(tenant_id, limits, true);
      reply.code(201);
      return added;
    },

    changeTenant: ({ params: { tenant = "" }, body }) => set(tenant, body, false),
  };
}

function toLimits(change: Change): Partial<TenantLimits> {
  const given = {
    weight: change.weight,
    maxRunning: change.max_running,
    maxWaiting: change.max_waiting,
    startRate: change.start_rate,
    enqueueRate: change.enqueue_rate,
    retentionSeconds: change.retention_seconds,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function tenantJson(tenant: Tenant): TenantJson {
  return {
    tenant_id: tenant.tenantId,
    created_at: isoOrNull(tenant.createdAt),
    weight: tenant.weight,
    max_running: tenant.maxRunning,
    max_waiting: tenant.maxWaiting,
    start_rate: tenant.startRate,
    enqueue_rate: tenant.enqueueRate,
    retention_seconds: tenant.retentionSeconds,
    ...accountJson(tenant),
  };
}
