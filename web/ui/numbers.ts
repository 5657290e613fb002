/** `1,234`. */
export function whole(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

/** Counting stops somewhere: `1,000+`. */
export function counted({ count, more }: { count: number; more: boolean }): string {
  return more ? `${whole(count)}+` : whole(count);
}

export function countWords(counts: { count: number; more: boolean }, thing: string): string {
  const one = counts.count === 1 && !counts.more;
  return `${counted(counts)} ${thing}${one ? "" : "s"}`;
}

/** `512 B`, `1.4 kB`, `20 MB`. */
export function byteSize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}
