import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ArtifactJson, JobJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { Id } from "../ui/copy.js";
import { Text } from "../ui/json.js";
import { byteSize } from "../ui/numbers.js";
import { ErrorNotice, Panel, Skeleton } from "../ui/page.js";
import { Time } from "../ui/time.js";
import { useArtifacts } from "./use-job.js";

const LARGEST_PREVIEW = 500_000;

export function ArtifactsPanel({ job }: { job: JobJson }) {
  const { data: artifacts, error } = useArtifacts(job);
  return (
    <Panel title="Artifacts">
      {error && <ErrorNotice error={error} />}
      {!artifacts && !error && <Skeleton lines={2} />}
      {artifacts?.length === 0 && <p className="muted">None: files and texts a handler keeps appear here.</p>}
      <ul className="records">
        {artifacts?.map((artifact) => (
          <Artifact key={artifact.artifact_id} artifact={artifact} />
        ))}
      </ul>
    </Panel>
  );
}

function Artifact({ artifact }: { artifact: ArtifactJson }) {
  const [open, setOpen] = useState(false);
  const kind = previewOf(artifact);
  return (
    <li>
      <div className="row">
        <strong className="breaks">{artifact.name}</strong>
        <span className="muted small">
          {artifact.media_type}, {byteSize(artifact.size)}, attempt {artifact.attempt_no},{" "}
          <Time at={artifact.created_at} />
        </span>
      </div>
      <div className="row">
        <Id value={artifact.sha256} what="SHA-256" />
        {kind && (
          <button type="button" className="button" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? "Hide" : "Preview"}
          </button>
        )}
        <a className="button" href={api.artifactUrl(artifact.sha256)} download={artifact.name}>
          Download
        </a>
      </div>
      {open && kind === "image" && (
        <img className="artifact-image" src={api.artifactUrl(artifact.sha256)} alt={artifact.name} />
      )}
      {open && kind === "text" && <TextPreview artifact={artifact} />}
    </li>
  );
}

/** Images only in formats that cannot hold a script. */
function previewOf({ media_type, size }: ArtifactJson): "text" | "image" | null {
  if (size > LARGEST_PREVIEW) return null;
  const type = media_type.split(";")[0]?.trim().toLowerCase() ?? "";
  if (/^image\/(png|jpeg|gif|webp|avif)$/.test(type)) return "image";
  return type.startsWith("text/") || type === "application/json" || type.endsWith("+json") ? "text" : null;
}

function TextPreview({ artifact }: { artifact: ArtifactJson }) {
  const { data, error } = useQuery({
    queryKey: ["artifact", artifact.sha256],
    queryFn: async ({ signal }) => {
      const response = await fetch(api.artifactUrl(artifact.sha256), { signal });
      if (!response.ok) throw new Error(`The server answered ${response.status}.`);
      return laidOut(await response.text(), artifact.media_type);
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error) return <ErrorNotice error={error} />;
  return data === undefined ? <Skeleton /> : <Text value={data} what={`content of ${artifact.name}`} />;
}

/** JSON on several lines; text that only claims to be JSON as it is. */
function laidOut(text: string, mediaType: string): string {
  if (!mediaType.includes("json")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
