import { useState } from "react";
import { Icon, type IconName } from "./icons.js";

type Theme = "light" | "dark" | "system";

const themes: [Theme, IconName][] = [
  ["light", "sun"],
  ["dark", "moon"],
  ["system", "system"],
];

function chosen(): Theme {
  const { theme } = document.documentElement.dataset;
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** Light, dark, or as the system has it; remembered by this browser. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosen);
  const choose = (next: Theme) => {
    if (next === "system") {
      delete document.documentElement.dataset.theme;
      localStorage.removeItem("theme");
    } else {
      document.documentElement.dataset.theme = next;
      localStorage.setItem("theme", next);
    }
    setTheme(next);
    window.dispatchEvent(new Event("themechange"));
  };
  return (
    <fieldset className="segments">
      <legend className="visually-hidden">Theme</legend>
      {themes.map(([each, icon]) => (
        <button
          key={each}
          type="button"
          aria-pressed={theme === each}
          aria-label={`${each} theme`}
          title={`${each} theme`}
          onClick={() => choose(each)}
        >
          <Icon name={icon} />
        </button>
      ))}
    </fieldset>
  );
}
