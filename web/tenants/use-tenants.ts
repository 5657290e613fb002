import { useQuery } from "@tanstack/react-query";
import { api, LIVE_MS } from "../api.js";

/** The tenants this person may see. */
export function useTenants() {
  return useQuery({
    queryKey: ["tenants"],
    queryFn: async ({ signal }) => (await api.listTenants({}, signal)).items,
    refetchInterval: LIVE_MS,
  });
}
