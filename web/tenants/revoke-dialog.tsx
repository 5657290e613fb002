import type { TokenJson } from "../../src/http/client.js";
import { api } from "../api.js";
import { ActionDialog } from "../ui/dialog.js";
import { useAction } from "../ui/use-action.js";

export function RevokeDialog({ token, onClose }: { token: TokenJson; onClose: () => void }) {
  const action = useAction({
    act: () => api.revokeToken({ params: { token: token.token_id } }),
    said: "Token revoked",
    onDone: onClose,
  });
  return (
    <ActionDialog
      title={`Revoke token ${token.name ?? ""}`}
      explains="The next request with this token is refused, and whoever is logged in with it is logged out. This cannot be taken back."
      verb="Revoke the token"
      danger
      busy={action.isPending}
      error={action.error}
      onConfirm={() => action.mutate()}
      onClose={onClose}
    />
  );
}
