// The program in Node that `claimq work --serve` runs for package workers: handlers of the
// TypeScript client that keep a diary of what they see and do, as those of diary.py.
// CLAIMQ_TYPESCRIPT is the folder of the client, built; by default it is the one of this tree.

import { appendFileSync, closeSync, openSync } from "node:fs";
import { request } from "node:http";

const client = process.env.CLAIMQ_TYPESCRIPT ?? new URL("../../../clients/typescript", import.meta.url).pathname;
const { task } = await import(`${client}/dist/index.js`);
const { handle, Permanent, RetryAfter, serve, Snooze } = await import(`${client}/dist/worker.js`);

const lease = Number(process.env.LEASE) * 1000;
const retry = 100;
const diary = `${process.env.DIARY}.${process.pid}`;
closeSync(openSync(diary, "ax"));

const now = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function note(of, event, at, text = "") {
  // JSON.stringify takes no bigint.
  const rest = JSON.stringify({ e: event, task: String(of.id), tok: of.token, attempt: of.attempt, text });
  appendFileSync(diary, `{"at":${at},"to":${now()},${rest.slice(1)}\n`);
}

/** Sees whether the handler is to stop, and writes down what it saw. */
function look(of, event) {
  const at = now();
  if (of.signal.aborted) {
    note(of, "ended", at, of.signal.reason.reason);
    throw of.signal.reason;
  }
  note(of, event, at);
}

/** Writes to the store; false: it has heard of a later claim. */
function write(of, what) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ task: String(of.id), token: of.token, worker: process.env.CLAIMQ_WORKER, what });
    const asked = request(process.env.STORE, { method: "POST", timeout: 30_000 }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode === 200));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Does the work of a claim, and returns how the attempt ends. */
async function work(params, of) {
  look(of, "begin");
  if (!(await write(of, "mark"))) return "refused";
  const every = 2 + 58 * Math.random();
  const left = lease * (Math.random() < 0.3 ? 0.1 + 2.9 * Math.random() : 0.1 + 0.5 * Math.random());
  const end = performance.now() + left;
  let blocksAt = Math.random() < 0.15 ? performance.now() + left * Math.random() : Infinity;
  while (performance.now() < end) {
    if (performance.now() >= blocksAt) {
      blocksAt = Infinity;
      block(lease * (0.1 + 1.4 * Math.random())); // nothing else of the loop runs meanwhile
    }
    await sleep(every);
    look(of, "held");
  }
  const ends = Math.random();
  if (ends < 0.12) return "fails";
  if (ends < 0.2) return "snoozes";
  if (!(await write(of, "effect"))) return "refused";
  return params.fails ? "failed" : "completes";
}

async function run(params, of) {
  let how;
  try {
    how = await work(params, of);
  } catch (error) {
    if (!of.signal.aborted) throw error;
    const { reason } = of.signal.reason;
    note(of, "return", now(), reason === "shutdown" ? "stops" : "lost");
    // One that is late writes all the same: what it writes to must know better.
    if (reason === "lease_lost" && Math.random() < 0.25) setTimeout(() => void write(of, "effect"), 2 * lease).unref();
    throw error;
  }
  note(of, "return", now(), how);
  switch (how) {
    case "failed":
      throw new Permanent("it is to fail");
    case "snoozes":
      throw new Snooze(retry);
    case "fails":
    case "refused":
      throw new RetryAfter(retry, `the attempt ${how}`);
  }
  const { seed, then = [] } = params;
  then.forEach((key, i) => of.followUp("plain", { seed: seed + i + 1 }, { key, maxAttempts: 0 }));
  return of.token;
}

await serve(
  ["plain", "timed"].map((type) => handle(task(type), { timeoutMs: 60_000 }, run)),
  { concurrency: 4 },
);
