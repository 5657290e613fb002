import type { Lease } from "../core/job.js";
import type { JsonValue } from "../core/json.js";
import { redactFields, redactText } from "../core/redact.js";
import { secretsIn } from "../core/secrets.js";
import type { JobContext } from "../handlers/define.js";

/**
 * What an attempt says about itself, with secrets hidden before anybody keeps or prints it: those that look like
 * one, those the process knows, and those of its own payload.
 */
export function hideSecrets<Services extends Pick<JobContext<unknown>, "log" | "progress">>(
  services: Services,
  lease: Lease,
): Services {
  let found: string[] | undefined;
  const own = () => {
    found ??= secretsIn(lease.input);
    return found;
  };
  const say = (level: "info" | "warn" | "error") => (message: string, fields?: Record<string, unknown>) =>
    services.log[level](
      redactText(message, own()),
      redactFields(fields, own()) as Record<string, unknown> | undefined,
    );
  return {
    ...services,
    log: { info: say("info"), warn: say("warn"), error: say("error") },
    progress: (fraction, message, details) =>
      services.progress(
        fraction,
        message === undefined ? undefined : redactText(message, own()),
        redactFields(details, own()) as JsonValue | undefined,
      ),
  };
}
