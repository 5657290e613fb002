import type { Contestant, JobInput, Place, QueueSession } from "../types.ts";
import type { Io, RoleParams } from "./index.ts";
import { inputs, openQueue } from "./queue.ts";

/** At most this many inputs are in memory at once; a contestant cuts them further as its docs advise. */
const PORTION = 50_000;

/** Puts jobs in the queue in bulk, as setup or as the measured thing itself. */
export async function fillRole(
  contestant: Contestant,
  place: Place,
  params: RoleParams["fill"],
  io: Io,
): Promise<void> {
  const session = await openQueue(contestant, place);
  if (params.install) await session.install();
  const delay = params.delaySeconds === undefined ? {} : { delaySeconds: params.delaySeconds };
  const { tenants } = params;
  let seconds = 0;
  for (let from = 0; from < params.jobs; from += PORTION) {
    const portion = inputs(from, Math.min(PORTION, params.jobs - from), params.blobBytes);
    const began = performance.now();
    if (tenants === undefined) await session.enqueueMany(portion, delay);
    else await fillTenants(session, portion, tenants);
    seconds += (performance.now() - began) / 1000;
  }
  await session.close();
  io.send("filled", { seconds });
}

/** The same number of jobs for each tenant. */
async function fillTenants(session: QueueSession, portion: JobInput[], tenants: number): Promise<void> {
  for (let at = 0; at < tenants; at++) {
    const own = portion.filter(({ n }) => n % tenants === at);
    if (own.length > 0) await session.enqueueMany(own, { tenant: `tenant-${at}` });
  }
}
