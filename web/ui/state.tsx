import { Icon, type IconName } from "./icons.js";

type Tone = "good" | "warn" | "bad" | "accent" | "calm";

interface Look {
  word: string;
  tone: Tone;
  icon: IconName;
}

/** How each state of a job, an attempt and an effect looks: a word, a shape and a colour. */
const looks: Record<string, Look> = {
  PENDING: { word: "Pending", tone: "calm", icon: "ring" },
  RUNNING: { word: "Running", tone: "accent", icon: "arc" },
  SUCCEEDED: { word: "Succeeded", tone: "good", icon: "check" },
  FAILED_RETRYABLE: { word: "Retrying", tone: "warn", icon: "retry" },
  FAILED_TERMINAL: { word: "Failed", tone: "bad", icon: "cross" },
  CANCELLED: { word: "Cancelled", tone: "calm", icon: "slash" },
  FAILED: { word: "Failed", tone: "bad", icon: "cross" },
  LEASE_EXPIRED: { word: "Lease expired", tone: "bad", icon: "bolt" },
  RELEASED: { word: "Released", tone: "calm", icon: "back" },
  SUPERSEDED: { word: "Superseded", tone: "warn", icon: "slash" },
  PLANNED: { word: "Planned", tone: "calm", icon: "ring" },
  DISPATCHED: { word: "Dispatched", tone: "accent", icon: "arc" },
  CONFIRMED: { word: "Confirmed", tone: "good", icon: "check" },
  IN_DOUBT: { word: "In doubt", tone: "warn", icon: "question" },
};

export function lookOf(state: string): Look {
  return looks[state] ?? { word: state, tone: "calm", icon: "ring" };
}

export function StateBadge({ state }: { state: string }) {
  const { word, tone, icon } = lookOf(state);
  return <Badge tone={tone} icon={icon} word={word} spinning={state === "RUNNING"} />;
}

export function Badge({ tone, icon, word, spinning = false }: Look & { spinning?: boolean }) {
  return (
    <span className={`badge tone-${tone}`}>
      <Icon name={icon} spinning={spinning} />
      {word}
    </span>
  );
}
