export interface Instruction {
  name: string;
  text: string;
}

export interface Stage {
  name: string;
  instructions: Instruction[];
}

/** The stages of a Dockerfile, each instruction on one line. What stands before the first FROM is left out. */
export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .replace(/^#.*\n/gm, "")
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, name = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (name === "FROM") stages.push({ name: / AS (\w+)$/.exec(rest)?.[1] ?? "", instructions: [] });
    else stages.at(-1)?.instructions.push({ name, text: rest });
  }
  return stages;
}

export const textOf = (stage: Stage | undefined, name: string): string | undefined =>
  stage?.instructions.findLast((instruction) => instruction.name === name)?.text;
