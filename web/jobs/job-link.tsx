import { Link } from "../router.js";
import { CopyButton, shortId } from "../ui/copy.js";

export function JobLink({ jobId }: { jobId: string }) {
  return (
    <span className="id">
      <Link href={`/jobs/${jobId}`} title={jobId} data-row>
        {shortId(jobId)}
      </Link>
      <CopyButton text={jobId} what="job id" />
    </span>
  );
}
