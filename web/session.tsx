import { createContext, useContext } from "react";
import { operations, type SessionJson } from "../src/http/client.js";

const SessionContext = createContext<SessionJson | null>(null);

export const SessionProvider = SessionContext.Provider;

/** Who is logged in. Only below the login. */
export function useSession(): SessionJson {
  const session = useContext(SessionContext);
  if (!session) throw new Error("there is no session here");
  return session;
}

const ranks = ["public", "viewer", "operator", "admin"];

/**
 * Whether this person may call an operation, by the same table the server decides with. What the server would
 * refuse is not shown.
 */
export function useMay(): (name: keyof typeof operations) => boolean {
  const { role, tenant_id } = useSession();
  return (name) => {
    const { access, ...rest } = operations[name];
    const forAll = !("allTenants" in rest) || tenant_id === null;
    return forAll && ranks.indexOf(role) >= ranks.indexOf(access);
  };
}
