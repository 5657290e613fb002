import { useQuery } from "@tanstack/react-query";
import { api } from "../api.js";

/** Accounts are counted from a day's records: not every few seconds. */
const COUNT_AGAIN_MS = 30_000;

/** The tenants this person may see. */
export function useTenants() {
  return useQuery({
    queryKey: ["tenants"],
    queryFn: async ({ signal }) => (await api.listTenants({}, signal)).items,
    refetchInterval: COUNT_AGAIN_MS,
  });
}
