import type { operations } from "../src/http/client.js";
import { useMay } from "./session.js";
import type { IconName } from "./ui/icons.js";

export interface PageLink {
  href: string;
  name: string;
  icon: IconName;
  /** Who may call this may see the page. */
  reads: keyof typeof operations;
}

const pages: PageLink[] = [
  { href: "/", name: "Overview", icon: "overview", reads: "getStats" },
  { href: "/jobs", name: "Jobs", icon: "jobs", reads: "listJobs" },
  { href: "/effects", name: "Effects", icon: "effects", reads: "listEffects" },
  { href: "/queues", name: "Queues", icon: "queues", reads: "listQueues" },
  { href: "/workers", name: "Workers", icon: "workers", reads: "listWorkers" },
  { href: "/tenants", name: "Tenants", icon: "tenants", reads: "listTenants" },
  { href: "/settings", name: "Settings", icon: "settings", reads: "listSettings" },
];

/** The pages this person may see. */
export function usePages(): PageLink[] {
  const may = useMay();
  return pages.filter(({ reads }) => may(reads));
}
