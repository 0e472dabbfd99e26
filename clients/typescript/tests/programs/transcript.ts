// The program of docs/protocol.md.
import { once } from "node:events";
import { task } from "claimq";
import { handle, RetryAfter, serve } from "claimq/worker";

await serve(
  [
    handle(task<unknown>("mail"), { timeoutMs: 60_000 }, async (params, { progress, followUp, signal }) => {
      if (params instanceof Uint8Array) throw new RetryAfter(60_000, "no answer");
      if (params === 3) {
        progress("half");
        await once(signal, "abort");
        signal.throwIfAborted();
      }
      progress({ connected: true });
      followUp("count", { sent: 1 });
      return { sent: 1 };
    }),
  ],
  { concurrency: 1 },
);
