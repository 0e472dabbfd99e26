import type { components } from "./api.js";
import { Invalid } from "./errors.js";

/** A task as the API takes it, for submitMany, a batch, a step, or a handler's follow-ups. */
export type NewTask = components["schemas"]["NewTask"];

/** A step as the API takes it. */
export type NewStep = components["schemas"]["NewStep"];

/**
 * A validator by https://standardschema.dev, as Zod, Valibot and ArkType have them. It must
 * validate at once: one that returns a promise is refused.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<Issue> };

interface Issue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/**
 * A type of tasks, with the types of what is submitted (Data), of what a handler returns
 * (Result), and of what a handler gets (Parsed: Data, unless a validator changes it).
 */
export interface TaskType<Data, Result = unknown, Parsed = Data> {
  /** What workers claim by. */
  readonly name: string;
  /** What params are held to, when they are submitted and before a handler gets them. */
  readonly schema: StandardSchema<Data, Parsed> | undefined;
  /** For the type checker: there is no such field. */
  readonly "~types"?: { readonly data: Data; readonly result: Result; readonly parsed: Parsed };
  /** Returns the same type with the type of its handler's result. */
  returns<R>(): TaskType<Data, R, Parsed>;
}

/**
 * Ties a task type to the types of its params and its result:
 *
 *     const mail = task<{ to: string }, { messageId: string }>("mail");
 *
 * With a validator these come from it, and what is submitted or handled is held to it:
 *
 *     const mail = task("mail", z.object({ to: z.email() })).returns<{ messageId: string }>();
 */
export function task<Data = unknown, Result = unknown>(name: string): TaskType<Data, Result>;
export function task<Data, Parsed>(name: string, schema: StandardSchema<Data, Parsed>): TaskType<Data, unknown, Parsed>;
export function task<Data, Parsed>(name: string, schema?: StandardSchema<Data, Parsed>): TaskType<Data, unknown, Parsed> {
  const type: TaskType<Data, unknown, Parsed> = {
    name,
    schema,
    returns: <R>() => type as TaskType<Data, R, Parsed>,
  };
  return type;
}

/** How long a task waits after an attempt that failed. */
export interface Backoff {
  /** After the first attempt, in milliseconds. */
  initialMs: number;
  /** No longer than this; if it is not given one day, or initialMs if that is more. */
  maxMs?: number;
  /** So many times as long after each further attempt, 1 to 1,000; 2 if it is not given. */
  factor?: number;
  /** Up to this share, 0 to 1, is taken off by chance; 0.2 if it is not given. */
  jitter?: number;
}

/** How a task is submitted. What is not given is the default of its type, else of the server. */
export interface TaskOptions {
  /**
   * The idempotency key: a submit with a key that is taken makes no task, but finds the one that
   * has it. Make it of what the work is about, as order-17-invoice.
   */
  key?: string;
  /**
   * "exists": the key is taken while the task exists, and 10 minutes more; "active": only until
   * the task ends.
   */
  unique?: "exists" | "active";
  /** How many milliseconds the task cannot be claimed. */
  delayMs?: number;
  /** The time before which it cannot be claimed. */
  runAt?: Date;
  /** If it is not claimed by then, it fails. */
  expiresAt?: Date;
  /** Higher is claimed first; 0 if it is not given. */
  priority?: number;
  /** After so many claims that failed the task fails; 0: no limit. */
  maxAttempts?: number;
  /** How many milliseconds a worker that died keeps the task from others. */
  leaseMs?: number;
  /** How long it waits after an attempt that failed. */
  backoff?: Backoff;
  /** How many milliseconds it is kept after its end; 0: not at all; -1: until it is deleted. */
  retentionMs?: number;
  /** Up to 16, to find it by. */
  labels?: Readonly<Record<string, string>>;
  /** Of one type and group one task is claimed at a time, in order of submission. */
  group?: string;
  /** The W3C trace context that its worker gets. */
  traceparent?: string;
  /** Tasks of which this one consists; see newStep. */
  steps?: readonly NewStep[];
  /** Who ends a task with steps: its last step, or ("claim") a processor. */
  finalize?: "auto" | "claim";
  /** What a step that failed means for the others. */
  onStepFailure?: "fail" | "continue";
}

/** The params of a call: they may be left out where the type has none. */
export type Params<Data, Options> = undefined extends Data
  ? [params?: NoInfer<Data>, options?: Options]
  : [params: NoInfer<Data>, options?: Options];

/**
 * Makes a task that is not submitted yet.
 *
 * @param type A type that `task` made, or the name of one.
 * @param rest Its params, any JSON up to 1 MiB, or a Uint8Array of bytes that are handed on as
 *   they are; then its options.
 * @throws {Invalid} The type's validator refuses the params.
 * @throws {RangeError} A Date of the options is none.
 */
export function newTask<Data>(
  type: TaskType<Data, any, any> | string,
  ...[params, options = {}]: Params<Data, TaskOptions>
): NewTask {
  if (typeof type !== "string") parse(type, params);
  const { backoff } = options;
  const made: NewTask = {
    task_type: typeof type === "string" ? type : type.name,
    idempotency_key: options.key,
    unique: options.unique,
    delay_ms: options.delayMs,
    run_at: options.runAt?.toISOString(),
    expires_at: options.expiresAt?.toISOString(),
    priority: options.priority,
    max_attempts: options.maxAttempts,
    lease_ms: options.leaseMs,
    backoff: backoff && {
      initial_ms: backoff.initialMs,
      max_ms: backoff.maxMs,
      factor: backoff.factor,
      jitter: backoff.jitter,
    },
    retention_ms: options.retentionMs,
    labels: options.labels && { ...options.labels },
    group: options.group,
    traceparent: options.traceparent,
    steps: options.steps && [...options.steps],
    finalize: options.finalize,
    on_step_failure: options.onStepFailure,
  };
  if (params instanceof Uint8Array) made.payload = toBase64(params);
  else if (params !== undefined || options.steps === undefined) made.params = params === undefined ? {} : params;
  return made;
}

const ONLY_WHOLE = ["idempotency_key", "unique", "traceparent", "retention_ms", "steps", "finalize", "on_step_failure"] as const;

/**
 * Makes a step of a task: a task with a name, which waits until those that it depends on are
 * completed.
 *
 * @throws {TypeError} The task has what only a whole task can have, as a key.
 */
export function newStep(step: string, task: NewTask, dependsOn: readonly string[] = []): NewStep {
  for (const only of ONLY_WHOLE) {
    if (task[only] !== undefined) throw new TypeError(`step ${step}: a step has no ${only}`);
  }
  return { ...task, step, ...(dependsOn.length > 0 && { depends_on: [...dependsOn] }) };
}

/**
 * Returns what a handler of the type gets for the params of a task.
 *
 * @throws {Invalid} The type's validator refuses them; `field` says where.
 */
export function parse<Data, Result, Parsed>(type: TaskType<Data, Result, Parsed>, params: unknown): Parsed {
  if (type.schema === undefined) return params as Parsed;
  const validated = type.schema["~standard"].validate(params);
  if (validated instanceof Promise) {
    throw new TypeError(`the validator of ${type.name} returns a promise: it must validate at once`);
  }
  if (validated.issues === undefined) return validated.value;
  const told = validated.issues.map((issue) => ({ at: place(issue), message: issue.message }));
  throw new Invalid(`${type.name}: ${told.map((t) => `${t.at}: ${t.message}`).join("; ")}`, {
    code: "invalid_task",
    field: told[0]?.at ?? "params",
  });
}

function place(issue: Issue): string {
  const keys = (issue.path ?? []).map((part) => (typeof part === "object" ? part.key : part));
  return "params" + keys.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}
