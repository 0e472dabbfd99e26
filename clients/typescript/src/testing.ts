// Helpers for tests of handlers and of what submits tasks: for node:test, vitest, or any other.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { Attempt, type Done, type Failed, type Outcome, type Snoozed } from "./attempt.js";
import { Client, type Submitted } from "./client.js";
import type { CallOptions } from "./core.js";
import { cut, encodeDone, LIMITS } from "./encode.js";
import type { Context, Handler } from "./handler.js";
import { type NewStep, type NewTask, newTask, type Params, type TaskOptions, type TaskType } from "./task.js";
import type { Task } from "./types.js";

export type { Done, Failed, Outcome, Snoozed };

/** How an attempt ended, and what its handler reported meanwhile. */
export type Ran<Result = unknown> = Outcome<Result> & { readonly progress: readonly unknown[] };

/** What a handler finds in its context, where a test wants another than that of a first attempt. */
export type RunOptions = Partial<Omit<Context, "type" | "left" | "progress" | "followUp">>;

/**
 * Runs a handler as a worker does, without a server, and returns how the attempt ended: as done,
 * failed or snoozed.
 *
 *     const outcome = await run(report, { month: 11 });
 *     assert.equal(outcome.kind === "done" && outcome.result, 11);
 *
 * The params go through the type's validator and through JSON, as with a submit.
 *
 * @throws {Invalid} The validator refuses the params.
 */
export async function run<Data, Result, Parsed>(
  handler: Handler<Data, Result, Parsed>,
  ...[params, options]: Params<Data, RunOptions>
): Promise<Ran<Result>> {
  const progress: unknown[] = [];
  const fields = { id: 1, token: 1, attempt: 1, ...options, type: handler.type.name };
  const attempt = new Attempt(fields, LIMITS, (json) => progress.push(JSON.parse(json)));
  const outcome = await attempt.run(handler, paramsOf(plain(newTask<unknown>(handler.type, params))));
  return { ...taken(outcome), progress };
}

/**
 * Runs handlers until nothing is left that can be claimed now, one task at a time in this
 * process, and returns how each attempt ended. It is for tests: leases are not extended.
 *
 * @throws {Error} A task was snoozed for 0 ms 100 times: it can always be claimed.
 */
export async function runWorker(handlers: readonly Handler[], client: Client): Promise<Ran[]> {
  const byType = new Map(handlers.map((handler) => [handler.type.name, handler]));
  const claim = { worker_id: WORKER, task_types: [...byType.keys()], limit: 1 };
  const all: Ran[] = [];
  const atOnce = new Map<number, number>(); // how often each task was snoozed for no time
  for (;;) {
    const { tasks } = await client.request("POST", "/api/tasks/claim", { body: claim });
    const [task] = tasks as Task[];
    if (task === undefined) return all;
    const ran = await work(byType.get(task.task_type) as Handler, task, client);
    all.push(ran);
    if (ran.kind !== "snoozed" || ran.afterMs > 0) continue;
    const times = (atOnce.get(task.id) ?? 0) + 1;
    if (times >= SNOOZES_MAX) throw new Error(`task ${task.id} (${task.task_type}) was snoozed for 0 ms ${times} times, and would be without end`);
    atOnce.set(task.id, times);
  }
}

/** How often runWorker lets a task be snoozed for no time. */
const SNOOZES_MAX = 100;

const WORKER = "test";

/** Runs the handler of a task that was claimed, and settles the claim. */
async function work(handler: Handler, task: Task, client: Client): Promise<Ran> {
  const progress: unknown[] = [];
  const fields = {
    id: task.id,
    token: task.claim_token as number,
    type: task.task_type,
    attempt: task.attempts,
    labels: task.labels ?? {},
    attributes: task.attributes ?? {},
    signalValue: task.signal,
    traceparent: task.traceparent,
    parentId: task.parent_id,
    step: task.step,
    dependencies: await dependencies(task, client),
  };
  const attempt = new Attempt(fields, LIMITS, (json) => progress.push(JSON.parse(json)));
  const outcome = taken(await attempt.run(handler, paramsOf(task)));
  const settle = (how: string, fields: object) => {
    const body = { worker_id: WORKER, claim_token: task.claim_token, ...fields };
    return client.request("POST", `/api/tasks/${task.id}/${how}`, { body });
  };
  if (progress.length > 0) await settle("extend", { progress: progress.at(-1) });
  if (outcome.kind === "snoozed") await settle("release", outcome.afterMs > 0 ? { delay_ms: outcome.afterMs } : {});
  else if (outcome.kind === "done") {
    const { steps, ...done } = JSON.parse(`{${encodeDone(outcome, LIMITS).slice(1)}}`) as { steps?: NewStep[] };
    if (steps !== undefined) await settle("steps", { steps });
    await settle("complete", done);
  }
  else {
    const { error, permanent, retryInMs } = outcome;
    await settle("fail", { error: cut(error, LIMITS.error_bytes), permanent: permanent || undefined, retry_in_ms: retryInMs });
  }
  return { ...outcome, progress };
}

async function dependencies({ parent_id, depends_on = [] }: Task, client: Client): Promise<Record<string, unknown>> {
  const results: Record<string, unknown> = {};
  if (depends_on.length === 0) return results;
  for await (const { step = "", result, result_payload } of client.tasks({ parent_id, include: ["result"] })) {
    if (depends_on.includes(step)) results[step] = result_payload === undefined ? result : Buffer.from(result_payload, "base64");
  }
  return results;
}

/** Returns what a handler gets for a task. */
function paramsOf({ params, payload }: { params?: unknown; payload?: string }): unknown {
  return payload === undefined ? params : Buffer.from(payload, "base64");
}

/** Returns what claimq makes of an outcome: what is no JSON, or too large, has failed. */
function taken<Result>(outcome: Outcome<Result>): Outcome<Result> {
  try {
    if (outcome.kind === "done") encodeDone(outcome, LIMITS);
    return outcome;
  } catch (thrown) {
    return { kind: "failed", error: (thrown as Error).message, thrown, permanent: true, retryInMs: undefined };
  }
}

/** Returns the task as the server would return it. */
function plain(task: NewTask): NewTask {
  return JSON.parse(JSON.stringify(task)) as NewTask;
}

/**
 * A client that keeps what is submitted, in place of sending it. Hand it to what submits:
 *
 *     const recorder = new Recorder();
 *     await signUp(recorder, "ada@example.org");
 *     recorder.assertSubmitted(mail, { to: "ada@example.org" });
 *
 * Its other calls are refused.
 */
export class Recorder extends Client {
  /** The tasks, in the order of their submits. */
  readonly submitted: NewTask[] = [];

  constructor() {
    const error = "a Recorder keeps submits, and does nothing else";
    const body = JSON.stringify({ success: false, code: "invalid_request", error, message: "Use a test server" });
    super({ endpoints: "http://recorder.invalid", apiKey: "", fetch: async () => new Response(body, { status: 400 }) });
  }

  override async submit<Data, Result = unknown>(
    type: TaskType<Data, Result, any> | string,
    ...[params, options]: Params<Data, TaskOptions & CallOptions>
  ): Promise<Submitted<Result>> {
    return this.#keep(newTask<unknown>(type, params, options)) as Submitted<Result>;
  }

  override async submitMany(tasks: readonly NewTask[]): Promise<Submitted[]> {
    return tasks.map((task) => this.#keep(task));
  }

  #keep(task: NewTask): Submitted {
    return { id: this.submitted.push(plain(task)), created: true, differs: false, replaced: false };
  }

  /**
   * Fails the test unless a task with these params was submitted, once. Options are compared, too,
   * if some are given: with { key: "k" } the task must have that key.
   */
  assertSubmitted<Data>(type: TaskType<Data, any, any> | string, ...[params, options]: Params<Data, TaskOptions>): void {
    const want = plain(newTask<unknown>(type, params, options));
    const found = this.submitted.filter((task) => Object.entries(want).every(([name, value]) => isDeepStrictEqual(task[name as keyof NewTask], value)));
    const told = `${JSON.stringify(want)} was submitted ${found.length} times, not once; there are ${JSON.stringify(this.#of(type))}`;
    assert.equal(found.length, 1, told);
  }

  /** Fails the test if a task of the type was submitted. */
  assertNotSubmitted(type: TaskType<any, any, any> | string): void {
    assert.deepEqual(this.#of(type), []);
  }

  #of(type: TaskType<any, any, any> | string): NewTask[] {
    const name = typeof type === "string" ? type : type.name;
    return this.submitted.filter((task) => task.task_type === name);
  }
}

/** Options of a test server. */
export interface TestServerOptions {
  /** Where its time begins; 2026-01-01T00:00:00Z if it is not given. */
  readonly at?: Date;
}

/**
 * A claimq in memory, as `claimq testserver` runs it, in some milliseconds. Its time stands still:
 * the test moves it. It needs the program claimq: in PATH, or named by CLAIMQ_BIN.
 *
 *     let server: TestServer;
 *     before(async () => { server = await TestServer.start(); });
 *     beforeEach(() => server.reset());
 *     after(() => server.close());
 */
export class TestServer {
  /** Its endpoint. */
  readonly url: string;
  /** A client of it. */
  readonly client: Client;
  /** Its time. */
  readonly time = {
    /**
     * Moves the time on by milliseconds, does what comes due on the way, each at its time (delays,
     * backoffs, schedules, leases), and returns the time.
     */
    advance: async (ms: number): Promise<Date> => {
      const { now } = await this.client.request("POST", "/test/advance", { body: { ms } });
      return new Date(now as string);
    },
  };
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.client = new Client({ endpoints: url, apiKey: "" });
    this.#child = child;
  }

  /**
   * Starts one. It ends with this process at the latest.
   *
   * @throws {Error} The program is not there, or did not start.
   */
  static async start({ at }: TestServerOptions = {}): Promise<TestServer> {
    const program = process.env["CLAIMQ_BIN"] || "claimq";
    const args = at === undefined ? [] : ["--at", at.toISOString()];
    const child = spawn(program, ["testserver", ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const failed = new Promise<never>((_, reject) => {
      child.on("error", (cause) => {
        reject(new Error(`the program ${program} cannot be run: install claimq in PATH, or name it in CLAIMQ_BIN`, { cause }));
      });
      child.on("exit", (code) => reject(new Error(`${program} testserver ended with ${code}`)));
    });
    const [url] = await Promise.race([once(createInterface({ input: child.stdout }), "line"), failed]) as [string];
    return new TestServer(url, child);
  }

  /** Forgets everything: ids, tokens and time begin again. */
  async reset(): Promise<void> {
    await this.client.request("POST", "/test/reset", { body: {} });
  }

  /** Ends the server. */
  async close(): Promise<void> {
    this.client.close();
    this.#child.stdin?.end();
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }
}
