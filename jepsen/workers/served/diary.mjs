// What `claimq work --serve` runs in package workers: handlers in Node that keep a diary of what
// they see and do, as diary.py does. It speaks the protocol of docs/protocol.md itself.

import { appendFileSync, closeSync, openSync } from "node:fs";
import { request } from "node:http";
import { Socket } from "node:net";

const lease = Number(process.env.LEASE) * 1000;
const retry = 100;
const diary = `${process.env.DIARY}.${process.pid}`;
closeSync(openSync(diary, "ax"));

const socket = new Socket({ fd: Number(process.env.CLAIMQ_FD), readable: true, writable: true });
const say = (message) => socket.write(JSON.stringify(message) + "\n");
const now = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** The tasks that are under way, by id and token. */
const running = new Map();
let stopping = false;

class Told extends Error {}

function note(task, event, at, text = "") {
  // JSON.stringify takes no bigint.
  const rest = JSON.stringify({ e: event, task: String(task.id), tok: task.token, attempt: task.attempt, text });
  appendFileSync(diary, `{"at":${at},"to":${now()},${rest.slice(1)}\n`);
}

/** Sees whether the handler is to stop, and writes down what it saw. */
function look(task, event) {
  const at = now();
  if (task.why !== undefined) {
    note(task, "ended", at, task.why);
    throw new Told(task.why);
  }
  note(task, event, at);
}

/** Writes to the store; false: it has heard of a later claim. */
function write(task, what) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ task: String(task.id), token: task.token, worker: process.env.CLAIMQ_WORKER, what });
    const asked = request(process.env.STORE, { method: "POST", timeout: 30_000 }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode === 200));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Does the work of a claim, and returns how the attempt ends. */
async function work(task) {
  look(task, "begin");
  if (!(await write(task, "mark"))) return "refused";
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
    look(task, "held");
  }
  const ends = Math.random();
  if (ends < 0.12) return "fails";
  if (ends < 0.2) return "snoozes";
  if (!(await write(task, "effect"))) return "refused";
  return task.params.fails ? "failed" : "completes";
}

/** The message that ends an attempt so. */
function answerOf(task, how) {
  const { id, token } = task;
  switch (how) {
    case "completes": {
      const { seed, then = [] } = task.params;
      const submit = then.map((key, i) => ({ task_type: "plain", params: { seed: seed + i + 1 }, idempotency_key: key, max_attempts: 0 }));
      return { kind: "done", id, token, result: token, ...(submit.length > 0 && { submit }) };
    }
    case "failed":
      return { kind: "fail", id, token, error: "it is to fail", permanent: true };
    case "snoozes":
      return { kind: "snooze", id, token, ms: retry };
    case "fails":
    case "refused":
      return { kind: "fail", id, token, error: `the attempt ${how}`, retry_in_ms: retry };
  }
  return { kind: "fail", id, token, error: `told to stop: ${how}` };
}

async function handle(task) {
  let how;
  try {
    how = await work(task);
  } catch (error) {
    if (!(error instanceof Told)) throw error;
    how = task.why === "shutdown" ? "stops" : "lost";
    // What it writes to must know better.
    if (how === "lost" && Math.random() < 0.25) setTimeout(() => void write(task, "effect"), 2 * lease).unref();
  }
  note(task, "return", now(), how);
  running.delete(`${task.id} ${task.token}`);
  say(answerOf(task, how));
  if (stopping && running.size === 0) socket.end();
}

function take(message) {
  switch (message.kind) {
    case "task":
      running.set(`${message.id} ${message.token}`, message);
      void handle(message);
      return;
    case "cancel": {
      const task = running.get(`${message.id} ${message.token}`);
      if (task !== undefined) task.why ??= message.why;
      return;
    }
    case "stop":
      stopping = true;
      if (running.size === 0) socket.end();
  }
}

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {}); // claimq says when to stop
let pieces = "";
socket.setEncoding("utf8");
socket.on("data", (data) => {
  const lines = (pieces + data).split("\n");
  pieces = lines.pop();
  for (const line of lines) take(JSON.parse(line));
});
socket.on("close", () => process.exit(0));
say({ kind: "hello", protocol: 1, types: ["plain", "timed"].map((type) => ({ type, timeout_ms: 60_000 })), concurrency: 4, client: "diary in Node" });
