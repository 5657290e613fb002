import type { Database } from "./database.js";

/** Acts as the owner of every table, past a pooler; refused unless the login is a member of that role. */
export async function withOwner<T>(db: Database, work: (owner: Database) => Promise<T>): Promise<T> {
  const owner = db.with({ url: db.directUrl, directUrl: undefined, role: "owner", maxConnections: 1 });
  try {
    return await work(owner);
  } finally {
    await owner.close();
  }
}
