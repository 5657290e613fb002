import { OracleError } from "../../core/errors.js";
import type { Handler, Handlers, Services } from "../call.js";
import type { OperationName } from "../operations.js";
import { effectRoutes } from "./effects.js";
import { fleetRoutes } from "./fleet.js";
import { jobRoutes } from "./jobs.js";
import { recordRoutes } from "./records.js";
import { sessionRoutes } from "./session.js";
import { statsRoutes } from "./stats.js";
import { steerRoutes } from "./steer.js";
import { tokenRoutes } from "./tokens.js";

const later = (async () => {
  throw new OracleError("NOT_FOUND", "not yet");
}) as unknown as Handler<OperationName>;

/** What each operation does. */
export function routes(services: Services): Handlers {
  return {
    ...jobRoutes(services),
    ...steerRoutes(services),
    ...recordRoutes(services),
    ...effectRoutes(services),
    ...fleetRoutes(services),
    ...statsRoutes(),
    ...tokenRoutes(services),
    ...sessionRoutes(services),
    listTenants: later,
    addTenant: later,
    changeTenant: later,
  } as Handlers;
}
