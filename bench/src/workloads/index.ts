import type { Workload } from "../run.ts";
import { backlog } from "./backlog.ts";
import { bareLoop } from "./bare-loop.ts";
import { drain } from "./drain.ts";
import { drain4k } from "./drain-4k.ts";
import { enqueue } from "./enqueue.ts";
import { inFlight } from "./in-flight.ts";
import { pickup, pickupLoaded } from "./pickup.ts";
import { python } from "./python.ts";
import { recovery } from "./recovery.ts";
import { retention } from "./retention.ts";
import { size } from "./size.ts";
import { snapshot } from "./snapshot.ts";
import { steps } from "./steps.ts";
import { tenants } from "./tenants.ts";

export const workloads: Workload[] = [
  drain,
  drain4k,
  enqueue,
  pickup,
  pickupLoaded,
  bareLoop,
  backlog,
  snapshot,
  inFlight,
  steps,
  python,
  recovery,
  size,
  retention,
  tenants,
];
