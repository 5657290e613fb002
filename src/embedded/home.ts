import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unavailable } from "./failures.js";
import { readIfThere, replaceFile } from "./files.js";

/** The user's directory: who uses the server, who is starting it, and where its data went. No secrets here. */
export interface Home {
  directory: string;
  locks: string;
  users: string;
}

export interface State {
  /** The directory this was written for; differs once the directory was moved or copied. */
  directory: string;
  /** The folder that holds the data and the log. */
  place: string;
  /** The port of the last start, used again as long as it is free. */
  port: number;
}

export async function openHome(path: string): Promise<Home> {
  await mkdir(path, { recursive: true });
  const directory = await realpath(path);
  const home = { directory, locks: join(directory, "locks"), users: join(directory, "users") };
  await mkdir(home.locks, { recursive: true });
  await mkdir(home.users, { recursive: true });
  // The data holds passwords; nobody shall commit it by accident.
  await writeFile(join(directory, ".gitignore"), "*\n", { flag: "wx" }).catch((error) => {
    if (error.code !== "EEXIST") throw error;
  });
  return home;
}

export async function readState(home: Home): Promise<State | undefined> {
  const file = stateFile(home);
  const text = await readIfThere(file);
  if (text === undefined) return undefined;
  const state = parseState(text);
  if (state === undefined) {
    throw unavailable(`${file} is damaged: remove ${home.directory} to start with an empty database.`);
  }
  return state;
}

export async function writeState(home: Home, state: State): Promise<void> {
  await replaceFile(stateFile(home), `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o644 });
}

function stateFile(home: Home): string {
  return join(home.directory, "embedded.json");
}

function parseState(text: string): State | undefined {
  try {
    const { directory, place, port } = JSON.parse(text);
    const known = typeof directory === "string" && typeof place === "string" && Number.isInteger(port);
    return known ? { directory, place, port } : undefined;
  } catch {
    return undefined;
  }
}
