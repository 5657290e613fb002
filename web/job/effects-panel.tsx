import type { JobJson } from "../../src/http/client.js";
import { EffectRecord } from "../effects/effect-record.js";
import { ErrorNotice, Panel, Skeleton } from "../ui/page.js";
import { useJobEffects } from "./use-job.js";

export function EffectsPanel({ job }: { job: JobJson }) {
  const { data: effects, error } = useJobEffects(job);
  return (
    <Panel title="Effects">
      {error && <ErrorNotice error={error} />}
      {!effects && !error && <Skeleton lines={2} />}
      {effects?.length === 0 && (
        <p className="muted">None: an effect's intent is recorded before the call goes out.</p>
      )}
      <ul className="records">
        {effects?.map((effect) => (
          <EffectRecord key={effect.effect_id} effect={effect} />
        ))}
      </ul>
    </Panel>
  );
}
