import { useSyncExternalStore } from "react";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function subscribe(listener: () => void): () => void {
  dark.addEventListener("change", listener);
  window.addEventListener("themechange", listener);
  return () => {
    dark.removeEventListener("change", listener);
    window.removeEventListener("themechange", listener);
  };
}

/** The theme in force; for what cannot take its colours from the style sheet. */
export function useTheme(): "light" | "dark" {
  return useSyncExternalStore(subscribe, () => {
    const { theme } = document.documentElement.dataset;
    if (theme === "light" || theme === "dark") return theme;
    return dark.matches ? "dark" : "light";
  });
}
