import { fileURLToPath } from "node:url";

/** The file that called into the module `own`; unknown in a REPL and in evaluated text. */
export function callerModule(own: string): string | undefined {
  const { prepareStackTrace } = Error;
  try {
    Error.prepareStackTrace = (_error, sites) => sites;
    const sites = new Error().stack as unknown as NodeJS.CallSite[];
    const files = sites.map((site) => toPath(site.getFileName() ?? ""));
    const from = files.lastIndexOf(toPath(own));
    const caller = files[from + 1];
    return caller?.startsWith("/") || /^[A-Za-z]:\\/.test(caller ?? "") ? caller : undefined;
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
  }
}

function toPath(file: string): string {
  return file.startsWith("file:") ? fileURLToPath(file) : file;
}
