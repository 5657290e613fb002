/**
 * Why a number of a JSON text would not come back as it was sent, or undefined. Every reader that keeps
 * doubles, ours included, would change it silently. Decimals may round, 0.1 always does; integers may not.
 */
export function numberFault(token: string): string | undefined {
  const value = Number(token);
  const sent = decimal(token);
  let why: string;
  if (!Number.isFinite(value)) why = "is too large for a double";
  else if (value === 0 && sent.digits !== "") why = "is so small that it would become 0";
  else if (sent.exponent >= 0 && !same(sent, decimal(String(value)))) why = `would change to ${value}`;
  else return undefined;
  return `the number ${token.length > 40 ? `${token.slice(0, 40)}…` : token} ${why}; send it as a string`;
}

/** digits × 10^exponent, without sign and without zeros at either end; zero has no digits. */
interface Decimal {
  digits: string;
  exponent: number;
}

function decimal(token: string): Decimal {
  const [mantissa = "", power = "0"] = token.replace(/^-/, "").split(/e/i);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  // By hand: /0+$/ takes quadratic time over runs of zeros inside the number.
  let start = 0;
  let end = all.length;
  while (start < end && all[start] === "0") start++;
  while (end > start && all[end - 1] === "0") end--;
  return { digits: all.slice(start, end), exponent: Number(power) - fraction.length + all.length - end };
}

function same(a: Decimal, b: Decimal): boolean {
  return a.digits === b.digits && (a.exponent === b.exponent || a.digits === "");
}
