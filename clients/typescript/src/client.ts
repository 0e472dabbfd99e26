import { type Answer, type CallOptions, Core, randomHex, type Request, sleep, WAIT_GRACE_MS } from "./core.js";
import { ClaimqError, family, Invalid, statusOf, SubmitManyError } from "./errors.js";
import { NotJson, toJson } from "./json.js";
import { batchSafe, POLL_MAX_MS, safe } from "./repeat.js";
import { type ClientOptions, settings } from "./settings.js";
import { type NewTask, newTask, type Params, type TaskOptions, type TaskType } from "./task.js";
import type { AnswerOf, Body, components, Event, KnownTask, NewSchedule, Op, Query, Schedule, ShareInfo, Task, TypeInfo } from "./types.js";

/** Bounds of one request of submitMany: tasks, tasks with their steps, and characters. */
const SUBMIT_ITEMS_MAX = 1_000;
const SUBMIT_TASKS_MAX = 10_000;
const SUBMIT_BYTES_MAX = 7 << 20;

/** Between two requests of a wait, at least. */
const WAIT_PAUSE_MS = 50;

/** The outcome of a submit. */
export interface Submitted<Result = unknown> {
  /** The task's id. */
  readonly id: number;
  /**
   * False: the key was taken, and `id` is the task that has it. A repeat after an answer that was
   * lost may find the task that this very call made; then it is false, too.
   */
  readonly created: boolean;
  /**
   * The task that has the key has another type or other params than the one that was submitted: a
   * mistake in how the keys are made.
   */
  readonly differs: boolean;
  /** With unique "replace": the task waited with the key, and has these params now. */
  readonly replaced: boolean;
  /** For the type checker: there is no such field. */
  readonly "~result"?: Result;
}

/** A task by its id, or by what its submit returned, which tells the type of its result, too. */
export type TaskRef<Result = unknown> = number | Submitted<Result>;

/** Which events of the trail to walk. */
export interface EventFilter extends Omit<Query<"follow_events">, "consistency" | "limit"> {}

/**
 * Submits tasks, and looks at them. Make one and keep it.
 *
 *     const client = new Client();
 *     const mail = task<{ to: string }, { messageId: string }>("mail");
 *     const { id } = await client.submit(mail, { to: "ada@example.org" }, { key: "welcome-ada" });
 *
 * A call goes to the node that leads, or to another that passes it on. It is repeated over lost
 * connections and changes of leader, where that can do no harm, until its time is over; what it
 * then rejects with says whether it may have been done. Every call rejects with a ClaimqError,
 * and takes `timeoutMs`, which it may take in all, and an AbortSignal: a call that is aborted
 * rejects with the signal's reason, and may have been done.
 *
 * Calls take and return the objects of docs/api.md, with the same field names.
 */
export class Client {
  #core: Core;

  /**
   * Checks the settings. Nothing is connected before the first call.
   *
   * @throws {TypeError} A setting is malformed.
   * @throws {Error} A file cannot be read.
   */
  constructor(options: ClientOptions = {}) {
    this.#core = new Core(settings(options));
  }

  /**
   * Closes the idle connections and ends walks that follow the trail. Calls that are under way
   * end as they would; later ones reject with Closed. Idle connections keep no process alive.
   */
  close(): void {
    this.#core.close();
  }

  /**
   * Submits a task: its type, its params, then its options. Params are any JSON up to 1 MiB, or a
   * Uint8Array of bytes, which are passed on unchanged.
   *
   * It is on the disks of most nodes once this resolves. Without a key it gets a random one, so
   * that this call can be repeated; a second call makes a second task.
   *
   * @throws {Invalid} The task is malformed: `field` says where. Correct it.
   * @throws {OutcomeUnknown} It may have been submitted, or may still be: submit it again with the
   *   same key.
   * @throws {NotAvailable} It was not submitted. Try again later.
   */
  async submit<Data, Result = unknown>(
    type: TaskType<Data, Result, any> | string,
    ...[params, options = {}]: Params<Data, TaskOptions & CallOptions>
  ): Promise<Submitted<Result>> {
    const made = newTask<unknown>(type, params, options);
    const answer = await this.#core.call(post("/api/tasks", keyed(made)), options) as SubmitAnswer;
    return submitted(answer.task.id, answer, made) as Submitted<Result>;
  }

  /**
   * Submits many tasks that newTask made, and returns the outcome of each, in order. A request
   * has up to 1,000 tasks or 7 MiB: either all its valid tasks are submitted, or none; a malformed one
   * is refused by itself. timeoutMs applies to each request.
   *
   * @throws {SubmitManyError} Some were not submitted: `results` has the outcome of each.
   */
  async submitMany(tasks: readonly NewTask[], options: CallOptions = {}): Promise<Submitted[]> {
    const results: (Submitted | ClaimqError)[] = [];
    let failed: ClaimqError | undefined;
    for (const part of parts(tasks)) {
      if (failed !== undefined) {
        const last = failed;
        results.push(...part.map(() => new (last.constructor as typeof ClaimqError)(`not sent: ${last.reason}`)));
        continue;
      }
      try {
        const body = `{"tasks":[${part.map((item) => item.json).join()}]}`;
        const answer = await this.#core.call({ method: "POST", path: "/api/tasks", body }, options) as SubmitManyAnswer;
        answer.results.forEach((result, i) => results.push(submitResult(result, part[i]!.task)));
      } catch (e) {
        if (!(e instanceof ClaimqError)) throw e;
        failed = e;
        results.push(...part.map(() => e));
      }
    }
    if (results.some((r) => r instanceof ClaimqError)) throw new SubmitManyError(results);
    return results as Submitted[];
  }

  /**
   * Returns a task with its params, result and last attempts.
   *
   * @throws {NotFound} There is no such task, or it was removed.
   */
  async get<Result = unknown>(task: TaskRef<Result>, options?: CallOptions): Promise<Task<Result>> {
    return this.#task("GET", taskPath(task), undefined, options) as Promise<Task<Result>>;
  }

  /**
   * Returns the task that has an idempotency key; with a type, of that type alone.
   *
   * @throws {NotFound} No task has it.
   */
  async getByKey(key: string, { type, ...options }: { type?: string } & CallOptions = {}): Promise<Task> {
    const path = withQuery(`/api/tasks/by-key/${encodeURIComponent(key)}`, { task_type: type });
    return this.#task("GET", path, undefined, options) as Promise<Task>;
  }

  /**
   * Waits until a task is completed, failed or cancelled, and returns it. Without timeoutMs it waits
   * without a limit.
   *
   * @throws {DOMException} With the name TimeoutError: it has not ended within timeoutMs.
   * @throws {NotFound} There is no such task, or it was removed meanwhile.
   */
  async wait<Result = unknown>(task: TaskRef<Result>, { timeoutMs, signal }: CallOptions = {}): Promise<Task<Result>> {
    const until = performance.now() + (timeoutMs ?? Infinity);
    const path = taskPath(task);
    const over = (why: string) => new DOMException(`task ${path.slice("/api/tasks/".length)} ${why}`, "TimeoutError");
    for (;;) {
      const began = performance.now();
      const answer = await this.#core.poll(until - began, signal, () => {
        const waitMs = Math.max(Math.min(Math.floor(until - performance.now()), POLL_MAX_MS), 1);
        const limit = timeoutMs === undefined ? {} : { timeoutMs: waitMs + Math.min(WAIT_GRACE_MS, this.#core.timeoutMs) };
        return this.#core.call({ method: "GET", path: `${path}?wait_ms=${waitMs}`, waitMs }, { ...limit, ...(signal && { signal }) });
      });
      if (answer === undefined) throw over("was not asked for: too many waits of the client are under way");
      const found = answer.task as Task<Result>;
      if (found.status === "completed" || found.status === "failed" || found.status === "cancelled") return found;
      const now = performance.now();
      if (now >= until) throw over(`has not ended yet: it is ${found.status}`);
      if (now - began < WAIT_PAUSE_MS) await sleep(WAIT_PAUSE_MS, signal);
    }
  }

  /**
   * Cancels a task. The worker of one that is claimed is asked to stop; it may complete it all the
   * same.
   *
   * @throws {NotFound} There is no such task.
   * @throws {Conflict} It is completed or has failed.
   */
  async cancel(task: TaskRef, options?: CallOptions): Promise<KnownTask> {
    return this.#task("POST", `${taskPath(task)}/cancel`, {}, options);
  }

  /**
   * Hands a task the signal that it waits for: any JSON up to 64 KiB. The first one counts; differs
   * says that the task had been handed another one before.
   *
   * @throws {NotFound} There is no such task.
   * @throws {Conflict} It has ended without its signal, or needs none.
   */
  async signal(task: TaskRef, signal?: unknown, options?: CallOptions): Promise<{ task: Task; differs: boolean }> {
    const answer = await this.request("POST", `${taskPath(task)}/signal`, { body: { signal }, ...options });
    return { task: answer.task as Task, differs: answer.same_signal === false };
  }

  /**
   * Makes a task pending that has failed, was cancelled, or is claimed. addAttempts is added to
   * its limit of attempts; with claimToken it is done only if that is the task's last claim. A
   * retry whose answer is lost is not repeated: the task may have been claimed in between, and the
   * repeat would take it from that worker.
   *
   * @throws {OutcomeUnknown} The answer was lost: look at the task.
   * @throws {Conflict} It is completed, or has no attempts left.
   */
  async retry(
    task: TaskRef, { addAttempts, claimToken, ...options }: { addAttempts?: number; claimToken?: number } & CallOptions = {},
  ): Promise<KnownTask> {
    const body: Body<"retry_task"> = { add_attempts: addAttempts, claim_token: claimToken };
    return this.#task("POST", `${taskPath(task)}/retry`, body, options, safe("retry", claimToken !== undefined));
  }

  /**
   * Deletes a task that has ended; its key is free at once.
   *
   * @throws {NotFound} There is no such task.
   * @throws {Conflict} It has not ended, or is a step.
   */
  async delete(task: TaskRef, options?: CallOptions): Promise<void> {
    await this.#core.call({ method: "DELETE", path: taskPath(task), deletes: true }, options);
  }

  /**
   * Changes a task that is neither claimed nor ended: priority, run_at, labels; null clears.
   *
   * @throws {Conflict} It is claimed or has ended.
   */
  async patch(task: TaskRef, changes: Body<"change_task">, options?: CallOptions): Promise<KnownTask> {
    return this.#task("PATCH", taskPath(task), changes, options);
  }

  /**
   * Lists tasks that match, page by page as one iterates, with what include names. `param` has values in the
   * params by JSON pointer, as {"/to": "ada@example.org"}.
   */
  async *tasks(
    filter: Omit<Query<"list_tasks">, "label" | "param" | "cursor"> & { label?: Readonly<Record<string, string>>; param?: Readonly<Record<string, string>> } = {},
    options?: CallOptions,
  ): AsyncGenerator<Task, void, undefined> {
    const query = {
      ...filter,
      label: Object.entries(filter.label ?? {}).map(([name, value]) => `${name}:${value}`),
      param: Object.entries(filter.param ?? {}).map(([at, value]) => `${at}:${value}`),
      include: filter.include?.join(),
    };
    let cursor: string | null = null;
    do {
      const path: string = withQuery("/api/tasks", { ...query, cursor });
      const page = await this.#get(path, options) as AnswerOf<"list_tasks">;
      yield* page.tasks as Task[];
      cursor = page.next_cursor;
    } while (cursor !== null);
  }

  /**
   * Retries, cancels or deletes all tasks that match; it is not atomic. If the answer has `more`, it
   * ran out of time, and the same call continues. A filter that selects nothing needs `all`. With
   * dry_run nothing is changed; with expect nothing is changed unless exactly that many match.
   *
   * @throws {Conflict} Another number matches than was expected.
   */
  async act(body: Body<"act_on_tasks">, options?: CallOptions): Promise<AnswerOf<"act_on_tasks">> {
    const repeatable = body.action !== "retry" && body.expect === undefined;
    return this.#core.call({ ...post("/api/tasks/actions", body), repeatable }, options) as Promise<AnswerOf<"act_on_tasks">>;
  }

  /**
   * Runs up to 1,000 ops in one entry of the log, in order; atomic: all or none. A submit without
   * a key gets a random one, and claims without a claim_request_id share one. Without atomic,
   * `results` has the outcome of each op, a refusal too.
   *
   * @throws {ClaimqError} Of an atomic batch, what the first op that was refused would reject with;
   *   `details.failed_op` says which.
   */
  async batch(
    ops: readonly Op[], { atomic = false, ...options }: { atomic?: boolean } & CallOptions = {},
  ): Promise<AnswerOf<"run_batch">> {
    const marked = ops.map((op) => (op.op === "submit" ? keyed(op) : op));
    const shares = marked.some((op) => op.op === "claim" && !isMarked(op));
    const repeatable = marked.every((op) => batchSafe(op.op, op.op === "claim" || isMarked(op)));
    const body = { ops: marked, atomic, ...(shares && { claim_request_id: randomHex() }) };
    return this.#core.call({ ...post("/api/batch", body), repeatable }, options) as Promise<AnswerOf<"run_batch">>;
  }

  /**
   * Returns why a task is not running.
   *
   * @throws {NotFound} There is no such task.
   */
  async why(task: TaskRef, options?: CallOptions): Promise<AnswerOf<"explain_task">> {
    return this.#get(`${taskPath(task)}/why`, options) as Promise<AnswerOf<"explain_task">>;
  }

  /** Returns the types that have tasks or settings, with their counts. */
  async types(options?: CallOptions): Promise<AnswerOf<"list_types">> {
    return this.#get("/api/types", options) as Promise<AnswerOf<"list_types">>;
  }

  /** Changes settings of a type, as {paused: true}; null clears one. */
  async setType(name: string, settings: Body<"change_type">, options?: CallOptions): Promise<TypeInfo> {
    const request = { ...post(`/api/types/${encodeURIComponent(name)}`, settings), method: "PATCH" };
    return (await this.#core.call(request, options)).type as TypeInfo;
  }

  /** Returns the shares of a type that have pending or claimed tasks, or settings. It asks for page after page, of 1,000 at most. */
  async shares(name: string, options?: CallOptions): Promise<ShareInfo[]> {
    const all: ShareInfo[] = [];
    for (let path = sharesPath(name); ; ) {
      const page = (await this.#get(path, options)) as Partial<AnswerOf<"list_shares">>;
      all.push(...(page.shares ?? []));
      if (!page.next) return all;
      path = `${sharesPath(name)}?after=${encodeURIComponent(page.next)}`;
    }
  }

  /** Replaces the settings of a share, as {paused: true}; those left out are its type's. */
  async setShare(name: string, key: string, settings: Body<"set_share">, options?: CallOptions): Promise<ShareInfo> {
    const request = { ...post(`${sharesPath(name)}/${encodeURIComponent(key)}`, settings), method: "PUT" };
    return (await this.#core.call(request, options)).share as ShareInfo;
  }

  /** Removes the settings of a share, not its tasks. */
  async deleteShare(name: string, key: string, options?: CallOptions): Promise<ShareInfo> {
    const request = { method: "DELETE", path: `${sharesPath(name)}/${encodeURIComponent(key)}` };
    return (await this.#core.call(request, options)).share as ShareInfo;
  }

  /** Returns all schedules, by name. It asks for page after page, of 1,000 and about 8 MiB at most. */
  async schedules(options?: CallOptions): Promise<Schedule[]> {
    const all: Schedule[] = [];
    for (let path = "/api/schedules"; ; ) {
      const page = (await this.#get(path, options)) as Partial<AnswerOf<"list_schedules">>;
      all.push(...(page.schedules ?? []));
      if (!page.next) return all;
      path = `/api/schedules?after=${encodeURIComponent(page.next)}`;
    }
  }

  /**
   * Makes a schedule, or replaces it.
   *
   * @throws {Invalid} It is malformed: `field` says where.
   */
  async setSchedule(name: string, schedule: NewSchedule, options?: CallOptions): Promise<Schedule> {
    const request = { ...post(`/api/schedules/${encodeURIComponent(name)}`, schedule), method: "PUT" };
    return (await this.#core.call(request, options)).schedule as Schedule;
  }

  /**
   * Deletes a schedule; the tasks that it submitted stay.
   *
   * @throws {NotFound} There is no such schedule.
   */
  async deleteSchedule(name: string, options?: CallOptions): Promise<void> {
    await this.#core.call({ method: "DELETE", path: `/api/schedules/${encodeURIComponent(name)}`, deletes: true }, options);
  }

  /** Returns failed tasks, grouped by their errors. */
  async failures(query: Query<"list_failures"> = {}, options?: CallOptions): Promise<AnswerOf<"list_failures">> {
    return this.#get(withQuery("/api/failures", query), options) as Promise<AnswerOf<"list_failures">>;
  }

  /** Returns who holds what, and when each was last heard from. */
  async workers(options?: CallOptions): Promise<AnswerOf<"list_workers">> {
    return this.#get("/api/workers", options) as Promise<AnswerOf<"list_workers">>;
  }

  /** Returns how many tasks there are, by status and type. */
  async stats(options?: CallOptions): Promise<AnswerOf<"get_stats">> {
    return this.#get("/api/stats", options) as Promise<AnswerOf<"get_stats">>;
  }

  /**
   * Walks the trail of events, oldest first, up to where it is now. after is a place, "INDEX.SUB"
   * of an event, behind which to begin.
   *
   * @throws {EventsGone} The events after that position are no longer kept.
   */
  async *events(filter: EventFilter = {}, options?: CallOptions): AsyncGenerator<Event, void, undefined> {
    let after = filter.after ?? "";
    let end: string | undefined;
    for (;;) {
      const path = withQuery("/api/events", { ...filter, after: after || undefined, limit: 1000 });
      const page = await this.#get(path, options) as components["schemas"]["Events"];
      end ??= page.place;
      yield* page.events;
      if (page.next === after || !isBefore(page.next, end)) return;
      after = page.next;
    }
  }

  /**
   * Walks the trail of events as it grows, without an end. Each event comes once and in order,
   * over lost connections and changes of leader. after is a place, "INDEX.SUB" of an event, behind
   * which to begin; if it is not given, from now on. It gives up only on a refusal that no other
   * node would answer differently.
   *
   * @throws {EventsGone} It fell behind, and the next events are no longer kept.
   */
  async *follow({ after = "", ...filter }: EventFilter = {}, { signal }: Pick<CallOptions, "signal"> = {}): AsyncGenerator<Event, never, undefined> {
    return yield* this.#core.follow(withQuery("/api/events", filter), after, signal) as AsyncGenerator<Event, never>;
  }

  /**
   * Makes a call of docs/api.md that has no method here, and returns what is answered. path is
   * percent-encoded, with the query. repeatable says that the call may be made again when its
   * answer was lost; a GET always may.
   */
  async request(
    method: string, path: string, { body, repeatable = false, ...options }: { body?: unknown; repeatable?: boolean } & CallOptions = {},
  ): Promise<Record<string, unknown>> {
    const json = body === undefined ? undefined : bodyOf(body);
    return this.#core.call({ method, path, body: json, repeatable }, options);
  }

  #get(path: string, options: CallOptions | undefined): Promise<Answer> {
    return this.#core.call({ method: "GET", path }, options);
  }

  async #task(method: string, path: string, body: object | undefined, options?: CallOptions, repeatable = true): Promise<KnownTask> {
    const json = body === undefined ? undefined : bodyOf(body);
    const answer = await this.#core.call({ method, path, body: json, repeatable }, options);
    return answer.task as KnownTask;
  }
}

type SubmitAnswer = components["schemas"]["SubmitAnswer"];
type SubmitManyAnswer = components["schemas"]["SubmitManyAnswer"];

function post(path: string, body: object): Request {
  return { method: "POST", path, body: bodyOf(body) };
}

/** Returns JSON of a body, or throws Invalid. In its errors name comes before a field. */
function bodyOf(body: unknown, name = ""): string {
  try {
    return toJson(name, body);
  } catch (e) {
    if (!(e instanceof NotJson)) throw e;
    const field = e.path.replace(/^\./, "");
    throw new Invalid(`${field || "the body"} ${e.why}`, { code: "invalid_request", field });
  }
}

function sharesPath(name: string): string {
  return `/api/types/${encodeURIComponent(name)}/shares`;
}

function taskPath(task: TaskRef): string {
  const id = typeof task === "number" ? task : task.id;
  if (!Number.isSafeInteger(id) || id < 1) throw new TypeError(`task id ${id}: it must be an integer of 1 or more`);
  return `/api/tasks/${id}`;
}

/** Adds those of the fields to the path that are there, a list as one of each. */
function withQuery(path: string, fields: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) query.append(name, String(one));
    }
  }
  return query.size > 0 ? `${path}?${query}` : path;
}

/** Returns the task with an idempotency key. */
function keyed<T extends NewTask>(task: T): T {
  return task.idempotency_key === undefined ? { ...task, idempotency_key: randomHex() } : task;
}

/** Reports whether an op carries what the server recognizes a repeat by. */
function isMarked(op: Op): boolean {
  switch (op.op) {
    case "submit": return op.idempotency_key !== undefined;
    case "claim": return op.claim_request_id !== undefined;
    default: return "claim_token" in op && op.claim_token !== undefined;
  }
}

/** Encodes the tasks, and divides them into requests. */
function parts(tasks: readonly NewTask[]): { json: string; task: NewTask }[][] {
  const all: { json: string; task: NewTask }[][] = [];
  let part: { json: string; task: NewTask }[] = [];
  let count = 0;
  let size = 0;
  for (const [i, task] of tasks.entries()) {
    const json = bodyOf(keyed(task), `tasks[${i}]`);
    const steps = 1 + (task.steps?.length ?? 0);
    const length = new TextEncoder().encode(json).length + 1;
    if (part.length === 0 || part.length === SUBMIT_ITEMS_MAX || count + steps > SUBMIT_TASKS_MAX || size + length > SUBMIT_BYTES_MAX) {
      part = [];
      all.push(part);
      count = size = 0;
    }
    part.push({ json, task });
    count += steps;
    size += length;
  }
  return all;
}

/** Returns the outcome of a submit; a random key is this call's own, so its task is, too. */
function submitted(id: number, result: components["schemas"]["Submitted"] | components["schemas"]["SubmitAnswer"], task: NewTask): Submitted {
  const { created, same_request, replaced } = result;
  return { id, created: created || task.idempotency_key === undefined, differs: same_request === false, replaced: replaced === true };
}

function submitResult(result: components["schemas"]["SubmitResult"], task: NewTask): Submitted | ClaimqError {
  if ("id" in result) return submitted(result.id, result, task);
  const { error, code, message, field } = result;
  const status = statusOf(code);
  return new (family(code, status))(error, { code, advice: message, status, field, details: result });
}

/** Reports whether a place of the trail is before another. */
function isBefore(a: string, b: string): boolean {
  const [ai = 0, as = 0] = a.split(".").map(Number);
  const [bi = 0, bs = 0] = b.split(".").map(Number);
  return ai < bi || (ai === bi && as < bs);
}
