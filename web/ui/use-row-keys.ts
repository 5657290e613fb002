import type { RefObject } from "react";
import { useKeys } from "./use-keys.js";

/** `j` and `k` walk along the rows' links; Enter then follows the link, as everywhere. */
export function useRowKeys(box: RefObject<HTMLElement | null>): void {
  const move = (by: number) => {
    const links = [...(box.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
    links[next]?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
}
