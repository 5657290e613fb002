import type { Handlers, Services } from "../call.js";
import { effectRoutes } from "./effects.js";
import { fleetRoutes } from "./fleet.js";
import { jobRoutes } from "./jobs.js";
import { recordRoutes } from "./records.js";
import { sessionRoutes } from "./session.js";
import { statsRoutes } from "./stats.js";
import { steerRoutes } from "./steer.js";
import { tenantRoutes } from "./tenants.js";
import { tokenRoutes } from "./tokens.js";

/** What each operation does. */
export function routes(services: Services): Handlers {
  return {
    ...jobRoutes(services),
    ...steerRoutes(services),
    ...recordRoutes(services),
    ...effectRoutes(services),
    ...fleetRoutes(services),
    ...statsRoutes(),
    ...tenantRoutes(services),
    ...tokenRoutes(services),
    ...sessionRoutes(services),
  };
}
