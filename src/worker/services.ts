import type { JobLog } from "../core/events.js";
import type { Lease, LogLevel } from "../core/job.js";
import { sanitizeToBytes } from "../core/json.js";
import { toLooseJsonText } from "../core/json-loose.js";
import { redactText } from "../core/redact.js";
import { secretsIn } from "../core/secrets.js";
import type { ProcessGroups } from "../handlers/process/group.js";
import { AttemptReport } from "./attempt-report.js";
import type { AttemptServices } from "./context.js";
import type { ArtifactKeeper } from "./keep-artifact.js";
import type { Records } from "./records.js";
import type { Reporter } from "./reporter.js";

/** How long a message, a line's fields and a progress's details may be. */
const TEXT_BYTES = 8192;

export interface ServiceParts {
  reporter: Reporter;
  records: Records;
  artifacts: ArtifactKeeper;
  groups: ProcessGroups | undefined;
  /** Where handlers' `log` goes besides the table. */
  log: ((lease: Lease) => JobLog) | undefined;
}

/**
 * What one attempt may reach of the worker around it. Made when it is first used: most attempts use nothing. What it
 * says about itself is made fit to be kept, with secrets hidden: those that look like one, those the process knows,
 * and those of its own payload.
 */
export class LeaseServices implements AttemptServices {
  private report: AttemptReport | undefined;
  private jobLog: JobLog | undefined;
  private secrets: string[] | undefined;

  constructor(
    private readonly lease: Lease,
    private readonly parts: ServiceParts,
  ) {}

  get records(): Records {
    return this.parts.records;
  }

  get groups(): ProcessGroups | undefined {
    return this.parts.groups;
  }

  get log(): JobLog {
    this.jobLog ??= this.makeLog();
    return this.jobLog;
  }

  get progress(): AttemptServices["progress"] {
    return (fraction, message, details) => {
      if (typeof fraction !== "number" || Number.isNaN(fraction)) {
        const shown = typeof fraction === "number" ? "NaN" : toLooseJsonText(fraction, 100);
        this.log.warn(`progress(${shown}) is ignored: the fraction must be a number from 0 to 1.`);
        return;
      }
      const parts = [
        `"fraction":${Math.min(1, Math.max(0, fraction))}`,
        ...(message === undefined ? [] : [`"message":${JSON.stringify(this.toText(message))}`]),
        ...(details === undefined ? [] : [`"details":${this.toJson(details)}`]),
      ];
      this.parts.reporter.progress(this.ownReport(), `{${parts.join(",")}}`);
    };
  }

  get usage(): AttemptServices["usage"] {
    return ({ tokens = 0, cost = 0 }) => {
      if (Number.isSafeInteger(tokens) && tokens >= 0 && Number.isFinite(cost) && cost >= 0) {
        this.parts.reporter.usage(this.ownReport(), tokens, cost);
        return;
      }
      const shown = toLooseJsonText({ tokens, cost }, 200);
      this.log.warn(
        `usage(${shown}) is ignored: tokens must be a whole number, cost a number, neither below 0.`,
      );
    };
  }

  get artifact(): AttemptServices["artifact"] {
    return (name, content, options) =>
      this.parts.artifacts.keep(this.lease, name, content, options?.mediaType);
  }

  private makeLog(): JobLog {
    const outer = this.parts.log?.(this.lease);
    const at = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) => {
      const text = this.toText(message);
      const json = this.toJson(fields ?? {});
      const kept = json === "{}" ? undefined : json.startsWith("{") ? json : `{"value":${json}}`;
      this.parts.reporter.log(this.ownReport(), level, text, kept);
      outer?.[level](text, kept && JSON.parse(kept));
    };
    return { info: at("info"), warn: at("warn"), error: at("error") };
  }

  /** Handlers are not always type-checked. Secrets are hidden before the text is cut: half a one is not recognised. */
  private toText(message: unknown): string {
    if (typeof message !== "string") return this.toJson(message);
    return sanitizeToBytes(redactText(message, this.ownSecrets()), TEXT_BYTES);
  }

  private toJson(value: unknown): string {
    return toLooseJsonText(value, TEXT_BYTES, this.ownSecrets());
  }

  private ownSecrets(): string[] {
    this.secrets ??= secretsIn(this.lease.input);
    return this.secrets;
  }

  private ownReport(): AttemptReport {
    this.report ??= new AttemptReport(this.lease);
    return this.report;
  }
}
