import { type ReactNode, useEffect, useRef, useState } from "react";
import { LogoutButton } from "./login/logout-button.js";
import { usePages } from "./pages.js";
import { Link, useAddress } from "./router.js";
import { Search } from "./search/search.js";
import { useSession } from "./session.js";
import { Icon } from "./ui/icons.js";
import { ThemeSwitch } from "./ui/theme-switch.js";
import { Toast } from "./ui/toast.js";
import { useKeys } from "./ui/use-keys.js";

export function Frame({ children }: { children: ReactNode }) {
  const { path } = useAddress();
  const [menuOpen, setMenuOpen] = useState(false);
  const [searching, setSearching] = useState(false);
  const search = () => setSearching(true);
  useKeys({ "/": search, "ctrl+k": search });
  useFreshPage(path, () => setMenuOpen(false));
  return (
    <div className="frame">
      <a className="skip-link" href="#page">
        Skip to the page
      </a>
      <header className="top">
        <Brand />
        <button type="button" className="button icon" aria-label="Search" onClick={search}>
          <Icon name="search" />
        </button>
        <button
          type="button"
          className="button icon"
          aria-label="Menu"
          aria-expanded={menuOpen}
          onClick={() => setMenuOpen(!menuOpen)}
        >
          <Icon name={menuOpen ? "cross" : "menu"} />
        </button>
      </header>
      <Side open={menuOpen} path={path} onSearch={search} />
      <main id="page" className="page" tabIndex={-1}>
        {children}
      </main>
      {searching && <Search onClose={() => setSearching(false)} />}
      <Toast />
    </div>
  );
}

function Side(props: { open: boolean; path: string; onSearch: () => void }) {
  const { role, tenant_id, version } = useSession();
  return (
    <aside className={props.open ? "side open" : "side"} aria-label="Menu">
      <Brand />
      <button type="button" className="search-button" onClick={props.onSearch}>
        <span>
          <Icon name="search" />
          Search
        </span>
        <kbd>/</kbd>
      </button>
      <nav className="nav" aria-label="Pages">
        {usePages().map(({ href, name, icon }) => (
          <Link key={href} href={href} aria-current={isCurrent(href, props.path) ? "page" : undefined}>
            <Icon name={icon} />
            {name}
          </Link>
        ))}
      </nav>
      <div className="side-end">
        <ThemeSwitch />
        <div className="whoami small">
          <span className="breaks">
            {role} · {tenant_id ?? "all tenants"}
          </span>
          <span className="muted">Oracle Worker {version}</span>
          <LogoutButton />
        </div>
      </div>
    </aside>
  );
}

function Brand() {
  return (
    <Link href="/" className="brand">
      <img src="/icon.svg" alt="" width="22" height="22" />
      Oracle Worker
    </Link>
  );
}

function isCurrent(href: string, path: string): boolean {
  return href === "/" ? path === "/" : path === href || path.startsWith(`${href}/`);
}

/** After a change of page the focus starts at its beginning, as after a load. */
function useFreshPage(path: string, onChange: () => void): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    onChange();
    document.getElementById("page")?.focus({ preventScroll: true });
  });
}
