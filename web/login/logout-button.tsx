import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api } from "../api.js";
import { Icon } from "../ui/icons.js";

export function LogoutButton() {
  const queries = useQueryClient();
  const logout = useMutation({
    mutationFn: () => api.logOut(),
    onSuccess: () => {
      // Nothing of one person's may be left for the next.
      queries.clear();
      queries.setQueryData(["session"], null);
    },
  });
  return (
    <button type="button" className="button" disabled={logout.isPending} onClick={() => logout.mutate()}>
      <Icon name="logout" />
      Log out
    </button>
  );
}
