import type { Command } from "commander";
import { registerTokens } from "./tokens.js";

export function register(program: Command): void {
  const tenants = program.command("tenants").description("who may do what for which tenant");
  registerTokens(tenants);
}
