import { type Fault, faultAt, tooDeep, tooLarge, within } from "./json-fault.js";

interface Walk {
  maxDepth: number;
  maxBytes: number;
  /** What the text will have at least. */
  bytes: number;
}

/**
 * How far past the limit the walk goes on, so that the text's exact size can be told. It must end somewhere:
 * an array that holds another twice, which holds another twice, has 2^64 elements at depth 64.
 */
const overshoot = 8;

/**
 * Whether JSON.stringify would write all of the value, not null or {} in place of what JSON has no word for.
 * Strings are not looked into: the text shows at once whether any of them is bad.
 */
export function checkValue(value: unknown, maxDepth: number, maxBytes: number): Fault | undefined {
  const walk: Walk = { maxDepth, maxBytes, bytes: 0 };
  const fault = checkAny(value, 0, walk) ?? checkSoFar(walk);
  return fault?.code === "PAYLOAD_TOO_DEEP" ? (findCycle(value as object) ?? fault) : fault;
}

function checkAny(value: unknown, depth: number, walk: Walk): Fault | undefined {
  switch (typeof value) {
    case "string":
      walk.bytes += value.length + 3;
      return undefined;
    case "number":
      walk.bytes += 2;
      return Number.isFinite(value)
        ? undefined
        : rejected(`${value} is no JSON number; send null or a string`);
    case "boolean":
      walk.bytes += 5;
      return undefined;
    case "object":
      walk.bytes += 2;
      return value === null ? undefined : checkObject(value, depth, walk);
    case "bigint":
      return rejected(`the bigint ${String(value).slice(0, 40)}n is not a JSON number; send it as a string`);
    case "undefined":
      return rejected("undefined has no place in a JSON array; send null");
    default:
      return rejected(`a ${typeof value} is not JSON; send data`);
  }
}

function checkObject(value: object, depth: number, walk: Walk): Fault | undefined {
  return hasToJson(value) ? checkConverted(value, depth, walk) : checkContainer(value, depth, walk);
}

function checkContainer(value: object, depth: number, walk: Walk): Fault | undefined {
  if (depth >= walk.maxDepth) return tooDeep(walk.maxDepth);
  const fault = checkSoFar(walk);
  if (fault) return fault;
  return Array.isArray(value) ? checkArray(value, depth, walk) : checkMembers(value, depth, walk);
}

function checkSoFar({ bytes, maxBytes }: Walk): Fault | undefined {
  if (bytes <= maxBytes * overshoot) return undefined;
  return tooLarge(`would be more than ${bytes} bytes of JSON`, maxBytes);
}

function checkArray(items: readonly unknown[], depth: number, walk: Walk): Fault | undefined {
  for (let index = 0; index < items.length; index++) {
    const fault = checkAny(items[index], depth + 1, walk);
    if (fault) return within(fault, index);
  }
  return undefined;
}

function checkMembers(value: object, depth: number, walk: Walk): Fault | undefined {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    const fault = checkClass(value);
    if (fault) return fault;
  }
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) {
    const member = members[key];
    if (member === undefined) continue;
    walk.bytes += key.length + 3;
    const fault = checkAny(member, depth + 1, walk);
    if (fault) return within(fault, key);
  }
  return undefined;
}

/** Instances of plain classes are written by their properties; a Map, a Promise or an Error would become {}. */
function checkClass(value: object): Fault | undefined {
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (kind === "Object") return undefined;
  if (kind === "Promise") return rejected("a Promise is not JSON; await it first");
  if (kind === "Map") return rejected("a Map is not JSON; send Object.fromEntries(map)");
  if (kind === "Set") return rejected("a Set is not JSON; send [...set]");
  return rejected(`a ${kind} is not JSON; send a plain object, an array or a string made of it`);
}

function hasToJson(value: object): value is { toJSON(): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function checkConverted(value: { toJSON(): unknown }, depth: number, walk: Walk): Fault | undefined {
  if (value instanceof Date && Number.isNaN(value.getTime())) {
    return rejected("an invalid Date is not JSON; send null or a valid one");
  }
  const converted = value.toJSON();
  if (converted === undefined) return rejected("its toJSON gives undefined; give null instead");
  // JSON.stringify does not ask the outcome for a toJSON of its own.
  return typeof converted === "object" && converted !== null
    ? checkContainer(converted, depth, walk)
    : checkAny(converted, depth, walk);
}

/** Enough to tell a cycle from mere depth wherever a person looks; past it, depth is reason enough. */
const cycleSearch = 100_000;

/** Depth first without recursion, each object once, so that a chain of a million does no harm. */
function findCycle(root: object): Fault | undefined {
  const left = new Set<object>();
  const open = new Set<object>([root]);
  const stack = [{ node: root, members: Object.entries(root), next: 0 }];
  for (let top = stack.at(-1); top && open.size + left.size < cycleSearch; top = stack.at(-1)) {
    const [, child] = top.members[top.next++] ?? [];
    if (top.next > top.members.length) {
      open.delete(top.node);
      left.add(top.node);
      stack.pop();
    } else if (typeof child === "object" && child !== null && !left.has(child) && !hasToJson(child)) {
      if (open.has(child)) {
        const trail = stack.map(({ node, members, next }) => {
          const key = members[next - 1]?.[0] ?? "";
          return Array.isArray(node) ? Number(key) : key;
        });
        return { ...rejected("the value refers to itself; JSON cannot"), trail: trail.reverse() };
      }
      open.add(child);
      stack.push({ node: child, members: Object.entries(child), next: 0 });
    }
  }
  return undefined;
}

function rejected(says: string): Fault {
  return faultAt("PAYLOAD_REJECTED", says);
}
