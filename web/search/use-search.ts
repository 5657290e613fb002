import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../api.js";
import { usePages } from "../pages.js";
import { shortId } from "../ui/copy.js";
import type { IconName } from "../ui/icons.js";
import { lookOf } from "../ui/state.js";

export interface Found {
  href: string;
  icon: IconName;
  text: string;
  note: string;
}

const TYPING_MS = 150;

/** Pages, types and jobs that fit what is typed; a whole job id comes first. */
export function useSearch(typed: string): Found[] {
  const text = typed.trim();
  const pages = usePages().filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  const asked = useSettled(text);
  const { data } = useQuery({
    queryKey: ["search", asked],
    queryFn: ({ signal }) => api.listJobs({ query: { text: asked, limit: 8 } }, signal),
    enabled: asked !== "",
    placeholderData: keepPreviousData,
  });
  const jobs = text === "" ? [] : (data?.items ?? []);
  const types = [...new Set(jobs.map(({ type }) => type))].filter((type) => type.includes(text));
  const whole = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
  return [
    ...(whole
      ? [{ href: `/jobs/${text}`, icon: "jobs" as const, text: shortId(text), note: "open this job" }]
      : []),
    ...pages.map(({ href, icon, name }) => ({ href, icon, text: name, note: "page" })),
    ...types.map((type) => ({
      href: `/jobs?${new URLSearchParams({ type })}`,
      icon: "queues" as const,
      text: type,
      note: "jobs of this type",
    })),
    ...jobs
      .filter(({ job_id }) => !whole || job_id !== text.toLowerCase())
      .map(({ job_id, type, state }) => ({
        href: `/jobs/${job_id}`,
        icon: lookOf(state).icon,
        text: type,
        note: `${shortId(job_id)}, ${lookOf(state).word.toLowerCase()}`,
      })),
    ...(text === "" || whole
      ? []
      : [
          {
            href: `/jobs?${new URLSearchParams({ text })}`,
            icon: "search" as const,
            text: `All jobs matching “${text}”`,
            note: "list",
          },
        ]),
  ];
}

/** The text once nothing more was typed for a moment. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
