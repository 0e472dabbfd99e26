// Handlers: what a worker does for tasks of which type, and what a handler knows and can say.

import { TIME_MAX_MS, TYPE } from "./options.js";
import type { NewStep, Params, TaskOptions, TaskType } from "./task.js";

/** How many tasks a process takes at once at most, and how many types it handles. */
export const CONCURRENCY_MAX = 1_000;

/**
 * Why a handler is told to stop. `failed`: work that it started threw, and the error was not caught, so
 * the attempt has failed. docs/protocol.md explains the others.
 */
export type Reason = "cancel_requested" | "lease_lost" | "timeout" | "shutdown" | "failed";

/** The reason of a handler's signal once it is to stop. Let it pass. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
  /** Why it is to stop. */
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(`told to stop: ${reason}`);
    this.reason = reason;
  }
}

/** Thrown by a handler: the task fails for good, even if attempts are left. */
export class Permanent extends Error {
  override readonly name = "Permanent";
}

/** Thrown by a handler: the attempt fails, and the next follows after this time instead of the backoff. */
export class RetryAfter extends Error {
  override readonly name = "RetryAfter";
  /** In milliseconds. */
  readonly afterMs: number;

  /** Takes milliseconds, up to a year, and why. @throws {RangeError} It is another number. */
  constructor(afterMs: number, message?: string, options?: ErrorOptions) {
    super(message ?? `to be tried again in ${afterMs} ms`, options);
    this.afterMs = time("afterMs", afterMs);
  }
}

/**
 * Thrown by a handler: the task is given back, and can be claimed again after this time. The attempt
 * is not counted.
 */
export class Snooze extends Error {
  override readonly name = "Snooze";
  /** In milliseconds. */
  readonly afterMs: number;

  /** Takes milliseconds, up to a year; 0: at once. @throws {RangeError} It is another number. */
  constructor(afterMs = 0) {
    super(`snoozed for ${afterMs} ms`);
    this.afterMs = time("afterMs", afterMs);
  }
}

/** The attempt that a handler works on. Its functions need no `this`. */
export interface Context {
  /** The task's id. */
  readonly id: number;
  /**
   * The claim token. Hand it to what the handler writes to, and let that refuse older ones: then
   * a worker that was cut off can do no harm.
   */
  readonly token: number;
  /** The task's type. */
  readonly type: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** The task's labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** What the submitter said of params or payload. */
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The signal that the task was handed, if it waited for one; `signal` is another thing. */
  readonly signalValue: unknown;
  /** The W3C trace context of the submit. */
  readonly traceparent: string | undefined;
  /** Of a step: the task that it belongs to. */
  readonly parentId: number | undefined;
  /** Of a step: its name. */
  readonly step: string | undefined;
  /**
   * Of a step: the results of the steps that it depends on, by name; undefined of one without. A
   * result of bytes is a Uint8Array.
   */
  readonly dependencies: Readonly<Record<string, unknown>>;
  /** The results are too many, and dependencies is empty: read them by the client. */
  readonly dependenciesLeftOut: boolean;
  /** Aborted when the handler is to stop; its reason is a Cancelled. Hand it to fetch and the like. */
  readonly signal: AbortSignal;
  /** Returns how many milliseconds are left before the handler is told to stop; Infinity: there is no limit. */
  readonly left: () => number;
  /**
   * Keeps how far the work is with the task: any JSON but null, up to 4 KiB. Of what comes faster
   * than it can be sent the last is. It throws TypeError for what is no JSON, RangeError for too much.
   */
  readonly progress: (value: unknown) => void;
  /**
   * Has a task submitted in the same step in which this one is completed: all of it is done, or
   * nothing. If the handler throws, it is not submitted. It throws RangeError for more than
   * the cluster takes: 1,000, unless it is told otherwise.
   */
  readonly followUp: <Data>(type: TaskType<Data, any, any> | string, ...rest: Params<Data, TaskOptions>) => void;
  /**
   * Has steps added to the task that this step belongs to, right before this step is completed;
   * newStep makes them. They may depend on each other and on steps that the task has. One that the
   * task has under its name is not added again, so another attempt may add the same. If the handler
   * throws, they are not added. It throws TypeError if this task is no step, RangeError for more
   * than 1,000.
   */
  readonly addSteps: (...steps: NewStep[]) => void;
}

/** What a handler may be given. */
export interface HandleOptions {
  /** How many tasks of the type a process takes at once, 1 to 1,000; as serve's if left out. */
  readonly concurrency?: number;
  /**
   * How long one may take, in milliseconds, up to a year. Then it is told to stop; if it does
   * not, the process is killed. As `claimq work --timeout` says if left out.
   */
  readonly timeoutMs?: number;
}

/**
 * What does the work. It gets a task's params, as its type's validator made them; bytes that were
 * submitted as a Uint8Array come as one.
 */
export type Run<Result, Parsed> = (params: Parsed, context: Context) => Result | Promise<Result>;

/** A handler with its task type, as handle makes it. */
export interface Handler<Data = any, Result = any, Parsed = any> {
  readonly type: TaskType<Data, Result, Parsed>;
  readonly options: HandleOptions;
  readonly run: Run<Result, Parsed>;
}

/**
 * Makes a function the handler of a task type, for serve.
 *
 * Its return value is the task's result, as JSON; a Uint8Array is kept unchanged, undefined and null
 * mean no result. A thrown value fails the attempt: Permanent for good, RetryAfter sets the time of the
 * next attempt, Snooze gives the task back. It must be safe to run twice for a task.
 *
 * @throws {RangeError} A number is out of bounds, or the type's name is invalid.
 */
export function handle<Data, Result, Parsed>(
  type: TaskType<Data, Result, Parsed>,
  options: HandleOptions,
  run: Run<NoInfer<Result>, NoInfer<Parsed>>,
): Handler<Data, Result, Parsed> {
  const { concurrency, timeoutMs } = options;
  if (!TYPE.holds(type.name)) throw new RangeError(`task type ${JSON.stringify(type.name)}: it must be ${TYPE.text}`);
  if (concurrency !== undefined) integer("concurrency", concurrency, CONCURRENCY_MAX);
  if (timeoutMs !== undefined) integer("timeoutMs", timeoutMs, TIME_MAX_MS);
  return { type, options, run };
}

/** Throws RangeError unless a number is an integer from 1 to most. */
export function integer(name: string, value: number, most: number): void {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new RangeError(`${name} is ${value}: it must be an integer, 1 to ${most}`);
  }
}

/** Returns milliseconds as the API takes them; a part of one counts as one. */
function time(name: string, value: number): number {
  if (!(value >= 0 && value <= TIME_MAX_MS)) {
    throw new RangeError(`${name} is ${value}: it must be 0 to ${TIME_MAX_MS} milliseconds`);
  }
  return Math.ceil(value);
}
