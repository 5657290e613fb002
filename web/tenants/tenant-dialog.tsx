import { useState } from "react";
import type { TenantJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";
import { limitFields, toLimits, toText } from "./tenant-limits.js";

/** Adds a tenant, or changes one's share and limits. */
export function TenantDialog({ tenant, onClose }: { tenant: TenantJson | undefined; onClose: () => void }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(() => toText(tenant));
  const action = useAction({
    act: async () => {
      const limits = toLimits(text);
      if (tenant) return api.changeTenant({ params: { tenant: tenant.tenant_id }, body: limits });
      return api.addTenant({ body: { tenant_id: name.trim(), ...limits } });
    },
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
      {limitFields.map(({ name: field, label, example }) => (
        <Field
          key={field}
          label={label}
          example={example}
          value={text[field]}
          onChange={(value) => setText({ ...text, [field]: value })}
        />
      ))}
    </ActionDialog>
  );
}

interface FieldProps {
  label: string;
  example?: string;
  value: string;
  onChange: (value: string) => void;
}

function Field({ label, example, value, onChange }: FieldProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <input
        className="input"
        maxLength={200}
        placeholder={example}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}
