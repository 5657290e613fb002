import { pageEffects } from "../../store/page-effects.js";
import { requireEffect, resolve } from "../../store/resolve.js";
import type { Handlers, Services } from "../call.js";
import { fromCursor, toCursor } from "../cursor.js";
import { effectJson } from "../to-json.js";

const uuid = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
const inDoubtPlace = new RegExp(`^\\d{1,17} ${uuid}$`);
const otherPlace = new RegExp(`^${uuid} [^\\0]{1,200}$`);

export function effectRoutes({ db }: Services): Handlers<"listEffects" | "resolveEffect"> {
  return {
    async listEffects({ query, tenant, within }) {
      const { state, cursor, limit } = query;
      const shape = state === "IN_DOUBT" ? inDoubtPlace : otherPlace;
      const after = cursor === undefined ? undefined : (fromCursor(cursor, shape) as [string, string]);
      const { items, next } = await within((own) =>
        pageEffects(own, { state, tenantId: tenant, after, limit }),
      );
      return { items: items.map(effectJson), next: next === null ? null : toCursor(next) };
    },

    async resolveEffect({ params: { id = "" }, body, within }) {
      const { outcome, evidence, response } = body;
      const finding = { outcome, evidence, ...(response === undefined ? {} : { response }) };
      const { tenantId } = await within((own) => requireEffect(own, id));
      return effectJson(await db.asTenant(tenantId, (own) => resolve(own, id, finding)));
    },
  };
}
