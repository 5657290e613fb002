import { useMutation } from "@tanstack/react-query";
import { api } from "../api.js";
import { Icon } from "../ui/icons.js";

export function LogoutButton() {
  const logout = useMutation({
    mutationFn: () => api.logOut(),
    // A fresh page: nothing of one person's is left for the next.
    onSuccess: () => window.location.assign("/"),
  });
  return (
    <button type="button" className="button" disabled={logout.isPending} onClick={() => logout.mutate()}>
      <Icon name="logout" />
      Log out
    </button>
  );
}
