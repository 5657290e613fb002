import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { api } from "../api.js";
import { goTo, useAddress } from "../router.js";
import { CommandLine } from "../ui/copy.js";

export function LoginPage() {
  const queries = useQueryClient();
  const spent = useAddress().search.has("spent");
  const [token, setToken] = useState("");
  const login = useMutation({
    mutationFn: () => api.logIn({ body: { token: token.trim() } }),
    onSuccess: (session) => {
      if (spent) goTo("/", { replace: true });
      queries.setQueryData(["session"], session);
    },
  });
  useEffect(() => {
    document.title = "Log in · Oracle Worker";
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    login.mutate();
  };
  return (
    <main className="login">
      <section className="panel">
        <h1 className="brand">
          <img src="/icon.svg" alt="" width="22" height="22" />
          Oracle Worker
        </h1>
        <form onSubmit={submit} className="stack">
          <label className="field">
            <span>Token</span>
            <input
              className="input mono"
              type="password"
              autoComplete="current-password"
              required
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          </label>
          <p className="form-error" role="alert">
            {login.error?.message ??
              (spent && "This login address has been used already. Use a token instead.")}
          </p>
          <button type="submit" className="button primary" disabled={login.isPending}>
            Log in
          </button>
        </form>
        <p className="muted small">
          No token yet? Whoever runs the server makes one for you. <code>dev</code> prints an address that
          logs you in.
        </p>
        <CommandLine command="oracle-worker tenants token --all --role admin" />
      </section>
    </main>
  );
}
