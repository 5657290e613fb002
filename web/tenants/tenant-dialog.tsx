import { useState } from "react";
import type { TenantJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";

/** Adds a tenant, or changes one's share and limits. */
export function TenantDialog({ tenant, onClose }: { tenant: TenantJson | undefined; onClose: () => void }) {
  const [name, setName] = useState("");
  const [weight, setWeight] = useState(String(tenant?.weight ?? 1));
  const [running, setRunning] = useState(String(tenant?.max_running ?? ""));
  const [rate, setRate] = useState(String(tenant?.rate_per_second ?? ""));
  const limits = { weight: Number(weight), max_running: orNull(running), rate_per_second: orNull(rate) };
  const action = useAction({
    act: () =>
      tenant
        ? api.changeTenant({ params: { tenant: tenant.tenant_id }, body: limits })
        : api.addTenant({ body: { tenant_id: name.trim(), ...limits } }),
    said: tenant ? "Limits changed" : "Tenant added",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title={tenant ? `Limits of ${tenant.tenant_id}` : "Add a tenant"}
      explains="Tenants with waiting jobs take turns by weight. An empty limit means none. Workers follow within seconds; running jobs are not touched."
      verb={tenant ? "Change limits" : "Add tenant"}
      busy={action.isPending}
      disabled={!tenant && name.trim() === ""}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    >
      {!tenant && <Field label="Name" value={name} onChange={setName} />}
      <Field label="Weight" value={weight} onChange={setWeight} number />
      <Field label="Most jobs at once" value={running} onChange={setRunning} number />
      <Field label="Starts per second" value={rate} onChange={setRate} number />
    </ActionDialog>
  );
}

function orNull(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  number?: boolean;
}

function Field({ label, value, onChange, number }: FieldProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <input
        className="input"
        inputMode={number ? "decimal" : "text"}
        pattern={number ? "[0-9]*\\.?[0-9]*" : undefined}
        maxLength={200}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}
