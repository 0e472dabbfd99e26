// Runs one handler by hand, without claimq.

import process from "node:process";
import { parseArgs } from "node:util";
import { Attempt } from "./attempt.js";
import { encodeDone, LIMITS } from "./encode.js";
import type { Handler } from "./handler.js";

const USAGE =
  "claimq is not there: start this program by `claimq work --serve -- COMMAND`, or set CLAIMQ_SOCKET to the" +
  " socket of its --listen, or run one handler with --task TYPE --params JSON";

/**
 * Runs the handler that the command line names, says how it ended, and sets the exit status: 0 if
 * it is done, 100 if it failed for good, else 1.
 *
 * @throws {Error} The command line names none.
 */
export async function runOnce(handlers: ReadonlyMap<string, Handler>): Promise<void> {
  const options = { task: { type: "string" }, params: { type: "string" } } as const;
  const { task, params = "{}" } = parseArgs({ options, strict: false }).values;
  if (typeof task !== "string" || typeof params !== "string") throw new Error(USAGE);
  const handler = handlers.get(task);
  if (handler === undefined) throw new Error(`--task is ${task}: there are handlers of ${[...handlers.keys()].join(", ")}`);
  let given: unknown;
  try {
    given = JSON.parse(params);
  } catch (e) {
    throw new Error(`--params is no JSON: ${(e as Error).message}`);
  }
  const attempt = new Attempt({ id: 0, token: 0, type: task, attempt: 1 }, LIMITS, (json) => console.error("progress:", json));
  const outcome = await attempt.run(handler, given);
  if (outcome.kind === "done") {
    try {
      encodeDone(outcome, LIMITS);
    } catch (e) {
      console.error((e as Error).message);
      process.exitCode = 100;
      return;
    }
    for (const submitted of outcome.followUps) console.error("submits:", JSON.stringify(submitted));
    for (const step of outcome.steps) console.error("adds:", JSON.stringify(step));
    console.log(outcome.result instanceof Uint8Array ? outcome.result : JSON.stringify(outcome.result ?? null));
    return;
  }
  console.error(outcome.kind === "failed" ? outcome.error : `snoozed for ${outcome.afterMs} ms`);
  process.exitCode = outcome.kind === "failed" && outcome.permanent ? 100 : 1;
}
