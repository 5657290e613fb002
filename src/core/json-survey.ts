/** NUL and halves of surrogate pairs as escapes; pairs and a plain backslash before u0000 match as well. */
const oddEscape = /\\u(?:0000|d[89a-f])/i;

/** Whether the text's strings need a closer look. Most texts have no \u at all, which is quickly seen. */
export function hasOddEscape(text: string): boolean {
  return text.includes("\\u") && oddEscape.test(text);
}

export interface Survey {
  tooDeep: boolean;
  /** How many `key: value` pairs the text has; fewer in the parsed value means that a key is there twice. */
  members: number;
  /** A number or an escape that only the slow scan can judge. */
  suspect: boolean;
}

/** One pass over the text that decides whether JSON.parse may see it and whether its word is good enough. */
export function surveyText(text: string, maxDepth: number): Survey {
  const survey: Survey = { tooDeep: false, members: 0, suspect: hasOddEscape(text) };
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = passString(text, at);
    else if (code === 0x3a) survey.members++;
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > maxDepth) return { ...survey, tooDeep: true };
    } else if (code === 0x7d || code === 0x5d) depth--;
    else if (code >= 0x30 && code <= 0x39) at = passNumber(text, at, survey);
  }
  return survey;
}

/** Returns the place of the closing quote: the first one after an even number of backslashes. */
function passString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    if ((end - before) % 2 === 1) return end;
  }
  return text.length;
}

/** Returns the place of the number's last character. */
function passNumber(text: string, start: number, survey: Survey): number {
  const point = passDigits(text, start);
  const end = text.charCodeAt(point) === 0x2e ? passDigits(text, point + 1) : point;
  const next = text.charCodeAt(end);
  // Up to 15 digits before the point are exact, and 300 characters too few to come near zero.
  if (point - start > 15 || end - start > 300 || next === 0x65 || next === 0x45) survey.suspect = true;
  return end - 1;
}

function passDigits(text: string, start: number): number {
  let at = start;
  for (let code = text.charCodeAt(at); code >= 0x30 && code <= 0x39; code = text.charCodeAt(at)) at++;
  return at;
}

export function countMembers(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  const members = value as Record<string, unknown>;
  for (const key of Object.keys(members)) count += 1 + countMembers(members[key]);
  return count;
}
