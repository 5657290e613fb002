import type { Settings } from "../../core/settings.js";
import type { Database } from "../database.js";

export interface Finding {
  check: string;
  level: "ok" | "warn" | "fail";
  message: string;
  /** What to do about it. */
  fix: string | null;
}

export interface Patient {
  /** As a worker sees it. */
  db: Database;
  /** With the login that migrates. */
  admin: Database;
  settings: Settings;
}

export type Symptom = Omit<Finding, "check">;

/** One thing to look at. What it finds is data; a check that throws has failed. */
export interface Check {
  name: string;
  examine(patient: Patient): Promise<Symptom[]>;
}

export const ok = (message: string): Symptom[] => [{ level: "ok", message, fix: null }];
export const warn = (message: string, fix: string): Symptom => ({ level: "warn", message, fix });
export const fail = (message: string, fix: string): Symptom => ({ level: "fail", message, fix });
