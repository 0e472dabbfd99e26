// The program that serve_test.go has claimq work --serve run: what a handler does is its params.
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { task } from "claimq";
import { handle, Permanent, RetryAfter, serve, Snooze } from "claimq/worker";

const job = task<{ what: string }, unknown>("job");
const snoozed = new Set<number>();

await serve([
  handle(job, { timeoutMs: 60_000 }, async ({ what }, { id, attempt, signal, progress, followUp }) => {
    const first = attempt === 1;
    switch (what) {
      case "fail": if (first) throw new Error("bad luck"); break;
      case "retry": if (first) throw new RetryAfter(10, "busy"); break;
      case "permanent": throw new Permanent("never");
      case "large": return new Uint8Array(2_000_000);
      case "bytes": return new TextEncoder().encode("12"); // that they are JSON changes nothing
      case "half": return "\ud800";
      case "stray": void Promise.reject(new Permanent("nobody waits")); await wait(60_000, undefined, { signal }); break;
      case "snooze":
        if (!snoozed.has(id)) {
          snoozed.add(id);
          throw new Snooze(10);
        }
        break;
      case "die": if (first) process.kill(process.pid, "SIGKILL"); break;
      case "exit": if (first) process.exit(7); break;
      case "block": for (const end = performance.now() + 2_000; performance.now() < end;); break;
      case "follow": followUp(job, { what: "followed" }, { key: "followed" }); break;
      case "wait":
        progress({ waits: true });
        await wait(60_000, undefined, { signal });
    }
    return { what, attempt };
  }),
]);
