import type { Command } from "commander";
import { registerLimits } from "./tenant-limits.js";

export function register(program: Command): void {
  const tenants = program.command("tenants").description("look at tenants, set what they may do");
  registerLimits(tenants);
}
