import { OracleError } from "../../core/errors.js";
import { version } from "../../version.js";
import type { Identity } from "../auth.js";
import type { Handlers, Services } from "../call.js";
import { setCookie, type Via } from "../credentials.js";
import type { SessionJson } from "../types.js";

export function sessionRoutes({
  authenticator,
  crash,
}: Services): Handlers<"getSession" | "logIn" | "logOut"> {
  const toSession = ({ role, tenantId }: Identity, via: Via): SessionJson => ({
    role,
    tenant_id: tenantId,
    via,
    dev: crash !== undefined,
    version,
  });
  return {
    getSession: async ({ identity, via }) => toSession(identity, via),

    async logIn({ body, request, reply }) {
      const token = "code" in body ? authenticator.redeem(body.code) : body.token;
      const identity = token === undefined ? undefined : await authenticator.identify(token);
      if (!token || !identity) {
        const used = "The code is wrong, or was used already: each works once.";
        throw new OracleError(
          "UNAUTHENTICATED",
          "code" in body ? used : "There is no such token, or it was revoked.",
        );
      }
      setCookie(request, reply, token);
      return toSession(identity, "cookie");
    },

    async logOut({ request, reply }) {
      setCookie(request, reply, undefined);
      return undefined;
    },
  };
}
