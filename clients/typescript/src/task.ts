import type { components } from "./api.js";
import { Invalid } from "./errors.js";
import { NotJson, toJson } from "./json.js";
import { check, type Fields, refused, TYPE } from "./options.js";

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
  /** The name by which workers claim. */
  readonly name: string;
  /** The validator of params, applied when they are submitted and before a handler gets them. */
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
  /** No longer than this; if it is not given one hour, or initialMs if that is more. */
  maxMs?: number;
  /** The factor for each further attempt, 1 to 1,000; 2 if it is not given. */
  factor?: number;
  /** Up to this share, 0 to 1, is taken off by chance; 0.2 if it is not given. */
  jitter?: number;
}

/** The options of a submit. Those that are missing have the default of the type, else of the server. */
export interface TaskOptions {
  /**
   * The idempotency key: a submit with a key that is taken adds no task, and returns the one that has
   * it. Derive it from the work, for example order-17-invoice.
   */
  key?: string;
  /**
   * "exists": the key is taken while the task exists, and 10 minutes more; "active": only until
   * the task ends; "replace": as "active", and a task of the type that waits with the key gets the
   * new params, runAt or delayMs, and expiresAt; "window": for uniqueMs after the submit.
   */
  unique?: "exists" | "active" | "replace" | "window";
  /** With unique "window", for how many milliseconds the key is taken, up to a day, whether the task is there or not. */
  uniqueMs?: number;
  /** How many milliseconds the task cannot be claimed. */
  delayMs?: number;
  /** The time before which it cannot be claimed. */
  runAt?: Date;
  /** If it is not claimed by then, it fails. */
  expiresAt?: Date;
  /** It fails also if it waits at expiresAt, or later, after a claim. */
  expiresAgain?: boolean;
  /** Higher is claimed first; 0 if it is not given. */
  priority?: number;
  /** The task fails after this many failed claims; 0: no limit. */
  maxAttempts?: number;
  /** The time until others get the task of a dead worker, in milliseconds. */
  leaseMs?: number;
  /** The wait after a failed attempt. */
  backoff?: Backoff;
  /**
   * The time that it is kept after its end, in milliseconds; 0: it is removed at once; -1: until it is
   * deleted.
   */
  retentionMs?: number;
  /** Up to 16, to find it by. */
  labels?: Readonly<Record<string, string>>;
  /** A JSON object that describes params or payload; its worker gets it unchanged. */
  attributes?: Readonly<Record<string, unknown>>;
  /** Of one type and group one task is claimed at a time, in order of submission. */
  group?: string;
  /** The share of its type's tasks that it belongs to, a tenant for example. The type can limit the claims of each, and let them take turns. */
  shareKey?: string;
  /**
   * It is blocked until Client.signal, and fails if no signal comes for so many milliseconds; of a step, once those that it
   * depends on have completed.
   */
  waitForSignalMs?: number;
  /** The W3C trace context that its worker gets. */
  traceparent?: string;
  /** Tasks of which this one consists; see newStep. */
  steps?: readonly NewStep[];
  /** Who ends a task with steps: its last step, or ("claim") a processor. */
  finalize?: "auto" | "claim";
  /** The effect of a failed step on the others. */
  onStepFailure?: "fail" | "continue";
}

/** The params of a call: they may be left out if the type has no params. */
export type Params<Data, Options> = undefined extends Data
  ? [params?: NoInfer<Data>, options?: Options]
  : [params: NoInfer<Data>, options?: Options];

/**
 * Makes a task that is not submitted yet.
 *
 * @param type A type that `task` made, or the name of one.
 * @param rest Its params, any JSON up to 1 MiB, or a Uint8Array of bytes, which are passed on
 *   unchanged; then its options.
 * @throws {Invalid} The type's validator refuses the params, the server would refuse an option, or
 *   params or attributes are no JSON, or would be another value as JSON: NaN, a Map, an instance of a class.
 *   `field` says where, in the names of the API.
 */
export function newTask<Data>(
  type: TaskType<Data, any, any> | string,
  ...[params, options = {}]: Params<Data, TaskOptions>
): NewTask {
  if (typeof type !== "string") parse(type, params);
  const { backoff } = options;
  // Each field that the API takes is named, or this does not compile.
  const made: NewTask & Record<Exclude<keyof NewTask, "params" | "payload">, unknown> = {
    task_type: typeof type === "string" ? type : type.name,
    idempotency_key: options.key,
    unique: options.unique,
    unique_ms: options.uniqueMs,
    delay_ms: options.delayMs,
    run_at: time("run_at", options.runAt),
    expires_at: time("expires_at", options.expiresAt),
    expires_again: options.expiresAgain,
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
    attributes: options.attributes && { ...options.attributes },
    group: options.group,
    share_key: options.shareKey,
    wait_for_signal_ms: options.waitForSignalMs,
    traceparent: options.traceparent,
    steps: options.steps && [...options.steps],
    finalize: options.finalize,
    on_step_failure: options.onStepFailure,
  };
  check(made as unknown as Fields);
  if (params instanceof Uint8Array) {
    if (params.length === 0) throw refused("payload", "is empty: it must have a byte");
    made.payload = toBase64(params);
  } else if (params !== undefined || options.steps === undefined) {
    made.params = params === undefined ? {} : params;
    if (params === null) throw refused("params", "is null: it must be any other JSON");
  }
  checkJson("params", made.params);
  checkJson("attributes", made.attributes);
  return made;
}

function time(field: string, at: Date | undefined): string | undefined {
  if (at !== undefined && Number.isNaN(at.getTime())) throw refused(field, "is a Date that is none");
  return at?.toISOString();
}

function checkJson(field: string, value: unknown): void {
  if (value === undefined) return;
  try {
    toJson(field, value);
  } catch (e) {
    throw e instanceof NotJson ? new Invalid(e.message, { code: "invalid_task", field: e.path }) : e;
  }
}

const ONLY_WHOLE = ["idempotency_key", "unique", "unique_ms", "attributes", "traceparent", "retention_ms", "steps", "finalize", "on_step_failure"] as const;

/**
 * Makes a step of a task: a task with a name, which waits until those that it depends on are
 * completed.
 *
 * @throws {TypeError} The task has an option that steps cannot have, such as a key; or a step's name is invalid.
 */
export function newStep(step: string, task: NewTask, dependsOn: readonly string[] = []): NewStep {
  for (const name of [step, ...dependsOn]) {
    if (!TYPE.holds(name)) throw new TypeError(`step ${JSON.stringify(name)}: its name must be ${TYPE.text}`);
  }
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
