import type { Command } from "commander";
import { registerLimits } from "./tenant-limits.js";
import { registerTokens } from "./tokens.js";

export function register(program: Command): void {
  const tenants = program.command("tenants").description("what tenants may do, and who may act for them");
  registerLimits(tenants);
  registerTokens(tenants);
}
