// Plays the scripts of clients/faults: redirects in a ring, cut connections, proxies. It prints
// what is not as it must be, and then ends with status 1.
//
//     faults.js own|fetch
//
// Requests go by the runtime's own transport or by fetch. CLAIMQ_FAULTS names the server.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { Client, ClaimqError, Invalid, NotAuthorized, NotAvailable, NotFound, OutcomeUnknown, task } from "claimq";

const server = process.env.CLAIMQ_FAULTS!;
const byFetch = process.argv[2] === "fetch";
const families: Record<string, typeof ClaimqError> = {
  invalid: Invalid,
  not_authorized: NotAuthorized,
  not_available: NotAvailable,
  not_found: NotFound,
  outcome_unknown: OutcomeUnknown,
};
const mail = task<{ to: string }>("mail");

interface Plan {
  endpoints: string[];
  call: string;
  calls: number;
  timeout_ms: number;
  outcome: string;
  code: string;
}

async function call(client: Client, plan: Plan): Promise<void> {
  const options = { timeoutMs: plan.timeout_ms };
  switch (plan.call) {
    case "submit": return assert.equal((await client.submit(mail, { to: "ada" }, options)).id, 1);
    case "get": return assert.equal((await client.get(1, options)).id, 1);
    case "retry": return assert.equal((await client.retry(1, options)).id, 1);
    case "delete": return client.delete(1, options);
    case "claim": return assert.deepEqual((await client.batch([{ op: "claim", worker_id: "w" }], options)).results, [{ success: true, tasks: [] }]);
    default: throw new Error(`there is no call ${plan.call}`);
  }
}

/** The time of a call was over before its last request was answered, as happens on a busy machine. */
class OutOfTime extends Error {}

/** How long a script is played again whose call was out of time. */
const PATIENCE_MS = 60_000;

async function play(script: string): Promise<void> {
  for (const until = performance.now() + PATIENCE_MS; ; ) {
    try {
      return await playOnce(script);
    } catch (e) {
      if (!(e instanceof OutOfTime) || performance.now() > until) throw e;
    }
  }
}

async function playOnce(script: string): Promise<void> {
  const child = spawn(server, [script], { stdio: ["pipe", "pipe", "pipe"] });
  const exit = new Promise((resolve) => child.on("close", resolve));
  let differences = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => { differences += text; });
  let outOfTime = false;
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const plan = JSON.parse((await lines.next()).value) as Plan;
    const client = new Client({ endpoints: plan.endpoints, apiKey: "k", ...(byFetch && { fetch }) });
    let error: unknown;
    try {
      for (let i = 0; i < plan.calls; i++) await call(client, plan);
    } catch (e) {
      error = e;
    }
    client.close();
    outOfTime = error instanceof OutcomeUnknown && plan.outcome !== "outcome_unknown";
    if (outOfTime) throw new OutOfTime(String(error));
    if (plan.outcome === "done") {
      assert.equal(error, undefined);
    } else {
      assert.ok(error instanceof ClaimqError, String(error));
      assert.equal(error.constructor, families[plan.outcome], String(error));
      assert.equal(error.code, plan.code);
      assert.ok(error.requestId);
    }
  } finally {
    child.stdin.end();
    const code = await exit;
    if (!outOfTime) assert.equal(code, 0, `the requests were not those of the script: ${differences}`);
  }
}

if (byFetch) await fetch("data:,"); // the first one takes long, longer than some script allows
const scripts = spawnSync(server, { encoding: "utf8" }).stdout.trim().split("\n");
assert.ok(scripts.length >= 20, `there are ${scripts.length} scripts`);
let right = 0;
const waiting = [...scripts];
async function playAll(): Promise<void> {
  for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
    try {
      await play(script);
      right++;
    } catch (e) {
      console.error(`${script}:`, e);
      process.exitCode = 1;
    }
  }
}
await Promise.all(Array.from({ length: 5 }, playAll));
console.log(`${right} of ${scripts.length} scripts`);
