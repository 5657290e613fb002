/** Sixteen-pixel line icons; always beside a word or inside a button with a name. */
const shapes = {
  overview: "M2 13V8M6 13V3M10 13V6M14 13v-3",
  jobs: "M2 4h12M2 8h12M2 12h8",
  queues: "M2 3h12v3H2zM2 10h12v3H2z",
  effects: "M9 1 3 9h5l-1 6 6-8H8z",
  workers: "M4 4h8v8H4zM6 1v3M10 1v3M6 12v3M10 12v3M1 6h3M1 10h3M12 6h3M12 10h3",
  tenants:
    "M6 7a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M1.5 14a4.5 4.5 0 0 1 9 0M11 7.5a2 2 0 1 0 0-4M12 10a4 4 0 0 1 2.5 4",
  settings: "M2 4h7M13 4h1M2 12h1M7 12h7M11 2v4M5 10v4",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M11 11l3.5 3.5",
  copy: "M6 6h8v8H6zM10 6V2H2v8h4",
  check: "M3 8.5l3.5 3.5L13 4.5",
  cross: "M4 4l8 8M12 4l-8 8",
  menu: "M2 4h12M2 8h12M2 12h12",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.5 1.5M11.5 11.5 13 13M13 3l-1.5 1.5M4.5 11.5 3 13",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7",
  system: "M2 3h12v8H2zM6 14h4M8 11v3",
  logout: "M6 2H3v12h3M10 5l3 3-3 3M13 8H6",
  back: "M10 3 5 8l5 5",
  next: "M6 3l5 5-5 5",
  pause: "M5 3v10M11 3v10",
  play: "M5 3l8 5-8 5z",
  retry: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3",
  ring: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12",
  dotted: "M8 2a6 6 0 0 1 4.2 1.8M14 8a6 6 0 0 1-1.8 4.2M8 14a6 6 0 0 1-4.2-1.8M2 8a6 6 0 0 1 1.8-4.2",
  arc: "M8 2a6 6 0 1 1-6 6",
  slash: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12M4 12l8-8",
  held: "M3.5 7h9v7h-9zM5.5 7V5a2.5 2.5 0 0 1 5 0v2",
  question: "M5.5 6a2.5 2.5 0 1 1 3.5 2.300c-.7.3-1 .8-1 1.700M8 13v.1",
  bolt: "M9 1 3 9h5l-1 6 6-8H8z",
} as const;

export type IconName = keyof typeof shapes;

export function Icon({ name, spinning }: { name: IconName; spinning?: boolean }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width="16"
      height="16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      className={spinning ? "spinning" : undefined}
    >
      <path d={shapes[name]} />
    </svg>
  );
}
