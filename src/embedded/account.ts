import { stat } from "node:fs/promises";
import { unavailable } from "./failures.js";
import { type Account, run } from "./run.js";

/** Accounts that most systems have and that own nothing of value; the last one is ours to create. */
const CREATED = "oracle-worker";
const CANDIDATES = ["postgres", "nobody", CREATED];

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

/** The account that Postgres runs as when we are root, which it refuses to be. */
export async function findAccount(): Promise<Account> {
  for (const name of CANDIDATES) {
    const account = await lookUp(name);
    if (account !== undefined) return account;
  }
  // Debian and Red Hat have the first, Alpine's busybox the second.
  await attempt("useradd", ["--system", "--no-create-home", "--user-group", CREATED]);
  await attempt("adduser", ["-S", "-D", "-H", CREATED]);
  const account = await lookUp(CREATED);
  if (account !== undefined) return account;
  throw unavailable(
    `Postgres refuses to run as root, and there is no account to run it as: create one of ${CANDIDATES.join(", ")}, ` +
      "or run this command as an ordinary user.",
  );
}

/** The account that owns an existing place, unless that is root. */
export async function ownerOf(folder: string): Promise<Account | undefined> {
  const found = await stat(folder).catch(() => undefined);
  return found === undefined || found.uid === 0 ? undefined : { uid: found.uid, gid: found.gid };
}

/** Tried for real rather than reckoned from modes: access lists and user namespaces have their say too. */
export async function canUse(account: Account, folder: string): Promise<boolean> {
  return attempt("/bin/sh", ["-c", 'cd "$0" && test -w .', folder], account);
}

async function lookUp(name: string): Promise<Account | undefined> {
  try {
    const [uid, gid] = await Promise.all(
      ["-u", "-g"].map((flag) => run("id", [flag, name], { cwd: "/", account: undefined })),
    );
    if (uid?.code !== 0 || gid?.code !== 0) return undefined;
    const account = { uid: Number(uid.output), gid: Number(gid.output) };
    // In a user namespace the account may exist and yet be out of reach.
    return account.uid !== 0 && (await attempt("/bin/sh", ["-c", ":"], account)) ? account : undefined;
  } catch {
    return undefined;
  }
}

async function attempt(file: string, args: string[], account?: Account): Promise<boolean> {
  return run(file, args, { cwd: "/", account }).then(
    (finished) => finished.code === 0,
    () => false,
  );
}
