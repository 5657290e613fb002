import { Component, type ReactNode } from "react";
import { ErrorNotice } from "./page.js";

/** Keeps a fault in one page from taking the menu with it. */
export class PageGuard extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return <ErrorNotice error={this.state.error} retry={() => this.setState({ error: null })} />;
  }
}
