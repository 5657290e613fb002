import { useQuery } from "@tanstack/react-query";
import { ApiError, type SessionJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { goTo } from "../router.js";

/** The session of this browser: null when nobody is logged in, undefined while it is not known. */
export function useLogin(): {
  session: SessionJson | null | undefined;
  error: Error | null;
  retry: () => void;
} {
  const { data, error, refetch } = useQuery({
    queryKey: ["session"],
    queryFn: readSession,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { session: data, error: data === undefined ? error : null, retry: () => void refetch() };
}

async function readSession(): Promise<SessionJson | null> {
  const { pathname, searchParams } = new URL(window.location.href);
  const code = searchParams.get("code");
  if (pathname === "/login" && code) {
    // A one-time code is spent on first use; the address must not offer it again.
    goTo("/", { replace: true });
    return api.logIn({ body: { code } }).catch(withSpentCode);
  }
  return api.getSession().catch(nobody);
}

/** A spent code is no harm to somebody who is already logged in. */
async function withSpentCode(error: unknown): Promise<SessionJson | null> {
  nobody(error);
  const session = await api.getSession().catch(nobody);
  if (!session) goTo("/?spent=1", { replace: true });
  return session;
}

function nobody(error: unknown): null {
  if (error instanceof ApiError && error.status < 500) return null;
  throw error;
}
