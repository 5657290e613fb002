import type { ReactNode } from "react";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  number?: boolean;
  /** Takes no more room than it needs. */
  narrow?: boolean;
  /** Its title is for those who cannot see that its cells are buttons. */
  unseen?: boolean;
  /** Takes a card's whole width. */
  wide?: boolean;
}

/** A table that turns into cards where there is no room for columns. */
export function Table<Row>(props: {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  rowClass?: (row: Row) => string | undefined;
}) {
  const { columns } = props;
  const classOf = (column: Column<Row>) =>
    [column.number && "number", column.narrow && "narrow", column.wide && "wide"].filter(Boolean).join(" ") ||
    undefined;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
    <section className="table-box" aria-label={`${props.caption}, as a table`} tabIndex={0}>
      <table className="table">
        <caption className="visually-hidden">{props.caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={classOf(column)}>
                {column.unseen ? <span className="visually-hidden">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.keyOf(row)} className={props.rowClass?.(row)}>
              {columns.map((column) => (
                <td
                  key={column.title}
                  data-title={column.unseen ? "" : column.title}
                  className={classOf(column)}
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
