import { QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, createClient } from "../src/http/client.js";

export const api = createClient();

/** How often what may change is asked for again; only while the page is visible. */
export const LIVE_MS = 3_000;

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: noticeLogout }),
  defaultOptions: {
    queries: {
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status < 500),
      staleTime: 1_000,
    },
    mutations: { onError: noticeLogout },
  },
});

/** A token that was revoked or ran out leads back to the login. */
function noticeLogout(error: Error): void {
  if (error instanceof ApiError && error.status === 401) queries.setQueryData(["session"], null);
}
