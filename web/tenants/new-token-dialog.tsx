import { useState } from "react";
import type { RequestOf, Role } from "../../src/http/client.js";
import { api } from "../api.js";
import { useSession } from "../session.js";
import { CommandLine } from "../ui/copy.js";
import { ActionDialog, Dialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";
import { useTenants } from "./use-tenants.js";

const roles: [Role, does: string][] = [
  ["viewer", "looks, changes nothing"],
  ["operator", "submits and steers jobs"],
  ["admin", "also makes tenants and tokens"],
];

/** Its secret is shown once, in the answer, and never again. */
export function NewTokenDialog({ onClose }: { onClose: () => void }) {
  const { tenant_id: own } = useSession();
  const { data: tenants = [] } = useTenants();
  const [tenant, setTenant] = useState(own ?? "");
  const [role, setRole] = useState<Role>("viewer");
  const [name, setName] = useState("");
  const [secret, setSecret] = useState<string>();
  const body: RequestOf<"addToken">["body"] = {
    tenant_id: tenant === "" ? null : tenant,
    role,
    ...(name.trim() ? { name: name.trim() } : {}),
  };
  const action = useAction({
    act: () => api.addToken({ body }),
    said: "Token made",
    onDone: ({ token }) => setSecret(token),
  });
  if (secret !== undefined) return <Secret secret={secret} onClose={onClose} />;
  return (
    <ActionDialog
      title="New token"
      explains="Makes a secret that opens the API and this page. Only its hash is kept: you see it once."
      verb="Make the token"
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      <label className="field">
        <span>Name</span>
        <input
          className="input"
          maxLength={200}
          placeholder="such as ci or anna"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label className="field">
        <span>Tenant</span>
        <select className="input" value={tenant} onChange={(event) => setTenant(event.target.value)}>
          {own === null && <option value="">all tenants</option>}
          {tenants.map(({ tenant_id }) => (
            <option key={tenant_id} value={tenant_id}>
              {tenant_id}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>Role</span>
        <select className="input" value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {roles.map(([each, does]) => (
            <option key={each} value={each}>
              {each}: {does}
            </option>
          ))}
        </select>
      </label>
    </ActionDialog>
  );
}

function Secret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog title="The new token" onClose={onClose}>
      <div className="stack">
        <p className="muted">Copy it now: it is shown only this once.</p>
        <CommandLine command={secret} />
        <div className="actions end">
          <button type="button" className="button primary" onClick={onClose}>
            I have copied it
          </button>
        </div>
      </div>
    </Dialog>
  );
}
