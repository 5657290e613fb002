import { type UseMutationResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { say } from "./toast.js";

/** Runs an action once it is confirmed, says what it did and reads anew whatever it may have changed. */
export function useAction<Answer>(options: {
  act: () => Promise<Answer>;
  said: string;
  onDone: (answer: Answer) => void;
}): UseMutationResult<Answer, Error, void> {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: options.act,
    onSuccess: async (answer) => {
      say(options.said);
      options.onDone(answer);
      await queries.invalidateQueries();
    },
  });
}
