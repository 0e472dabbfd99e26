// One attempt at a task: runs its handler and returns an outcome, also if it throws.

import { inspect } from "node:util";
import { encodeProgress, type Limits } from "./encode.js";
import { Invalid } from "./errors.js";
import { Cancelled, type Context, type Handler, Permanent, type Reason, RetryAfter, Snooze } from "./handler.js";
import { type NewStep, type NewTask, newTask, type Params, parse, type TaskOptions, type TaskType } from "./task.js";

/** The handler returned: the task is completed. */
export interface Done<R = unknown> {
  readonly kind: "done";
  /** What it returned. */
  readonly result: R;
  /** What it had submitted by followUp. */
  readonly followUps: readonly NewTask[];
  /** What it had added by addSteps. */
  readonly steps: readonly NewStep[];
}

/** The handler threw: the attempt has failed. */
export interface Failed {
  readonly kind: "failed";
  /** What is kept with the task: what was thrown, then its stack and causes. */
  readonly error: string;
  /** What was thrown. */
  readonly thrown: unknown;
  /** No other attempt follows. */
  readonly permanent: boolean;
  /** Milliseconds until the next attempt; undefined: the backoff says. */
  readonly retryInMs: number | undefined;
}

/** The handler gave the task back. */
export interface Snoozed {
  readonly kind: "snoozed";
  /** For this many milliseconds. */
  readonly afterMs: number;
}

/** How an attempt ended. */
export type Outcome<R = unknown> = Done<R> | Failed | Snoozed;

/** The fields of a context. */
export type Fields = Pick<Context, "id" | "token" | "type" | "attempt"> & Partial<Context>;

/** Has the controller of a context's signal. */
const CONTROLLER = Symbol("controller");

/**
 * The signal of a context, made when it is first asked for: most handlers never do, and of all
 * that an attempt needs it costs by far the most. It is one for all contexts, so that they have one shape.
 */
const SIGNAL: PropertyDescriptor & ThisType<{ [CONTROLLER]: AbortController }> = {
  get() {
    return this[CONTROLLER].signal;
  },
  enumerable: true,
  configurable: true,
};

/** An attempt under way. */
/** Bounds the steps of a task. */
const STEPS_MAX = 1_000;

export class Attempt {
  readonly context: Context;
  readonly #followUps: NewTask[] = [];
  readonly #steps: NewStep[] = [];
  readonly #controller = new AbortController();

  /** Takes what the cluster takes, what is done with progress as JSON, and how long the handler has. */
  constructor(fields: Fields, limits: Limits, report: (json: string) => void, timeoutMs = Infinity) {
    const end = performance.now() + timeoutMs;
    const context = {
      labels: {},
      attributes: {},
      signalValue: undefined,
      traceparent: undefined,
      parentId: undefined,
      step: undefined,
      dependencies: {},
      dependenciesLeftOut: false,
      left: () => Math.max(end - performance.now(), 0),
      progress: (value: unknown) => report(encodeProgress(value, limits)),
      followUp: <Data>(type: TaskType<Data, any, any> | string, ...rest: Params<Data, TaskOptions>) => {
        if (this.#followUps.length >= limits.submit) throw new RangeError(`a task has at most ${limits.submit} follow-ups`);
        this.#followUps.push(newTask(type, ...rest));
      },
      addSteps: (...steps: NewStep[]) => {
        if (this.context.step === undefined) throw new TypeError("this task is no step: it has no task to add steps to");
        if (this.#steps.length + steps.length > STEPS_MAX) throw new RangeError(`a task has at most ${STEPS_MAX} steps`);
        this.#steps.push(...steps);
      },
      [CONTROLLER]: this.#controller,
      ...fields,
    };
    this.context = (fields.signal === undefined ? Object.defineProperty(context, "signal", SIGNAL) : context) as Context;
  }

  /** Tells the handler to stop. */
  cancel(reason: Reason): void {
    this.#controller.abort(new Cancelled(reason)); // the first counts
  }

  /** Runs the handler, and hands on how that ended. It never throws. */
  start<Data, Result, Parsed>(handler: Handler<Data, Result, Parsed>, params: unknown, ended: (outcome: Outcome<Result>) => void): void {
    const failed = (thrown: unknown) => ended(this.outcomeOf(thrown));
    let running: Promise<Result>;
    try {
      running = Promise.resolve(handler.run(fitting(handler.type, params), this.context));
    } catch (e) {
      return failed(e);
    }
    running.then((result) => ended({ kind: "done", result, followUps: this.#followUps, steps: this.#steps }), failed);
  }

  /** Runs the handler, as start does. */
  run<Data, Result, Parsed>(handler: Handler<Data, Result, Parsed>, params: unknown): Promise<Outcome<Result>> {
    return new Promise((resolve) => this.start(handler, params, resolve));
  }

  /** Returns what it means that the handler threw something. */
  outcomeOf(thrown: unknown): Failed | Snoozed {
    try {
      const failed = { kind: "failed", thrown, permanent: false, retryInMs: undefined } as const;
      if (thrown instanceof Snooze) return { kind: "snoozed", afterMs: thrown.afterMs };
      if (thrown instanceof Permanent) return { ...failed, error: told(thrown), permanent: true };
      if (thrown instanceof RetryAfter) return { ...failed, error: told(thrown), retryInMs: thrown.afterMs };
      const { signal } = this.context;
      if (signal.aborted && (thrown === signal.reason || (thrown as Error | undefined)?.name === "AbortError")) {
        return { ...failed, error: String((signal.reason as Error).message) };
      }
      return { ...failed, error: describe(thrown) };
    } catch {
      return { kind: "failed", error: UNREADABLE, thrown, permanent: false, retryInMs: undefined };
    }
  }
}

/** Returns what a handler gets for params. Those that its validator refuses would be refused again. */
function fitting<Data, Result, Parsed>(type: TaskType<Data, Result, Parsed>, params: unknown): Parsed {
  try {
    return parse(type, params);
  } catch (e) {
    throw e instanceof Invalid ? new Permanent(`params do not fit: ${e.reason}`) : e;
  }
}

const UNREADABLE = "the handler threw something that cannot be read";

/** The maximum length of a chain of causes in an error. */
const CAUSES_MAX = 5;

/**
 * Returns a thrown value as text: first its message, by which failures are grouped, then its stack and
 * its causes. Other fields of an error are left out, because they may be secret, such as a request's
 * headers.
 */
function describe(thrown: unknown, causes = 0): string {
  if (!(thrown instanceof Error)) return `${inspect(thrown)} was thrown, which is no Error`;
  const { name, message, stack = "", cause, code } = thrown as Error & { code?: unknown };
  // A stack begins with the name and the message that there were when it was made.
  let text = stack.startsWith(name) && stack.includes(message) ? stack : `${name}: ${message}\n${stack}`;
  if (typeof code === "string" && !text.includes(code)) text += `\n(${code})`;
  if (cause !== undefined && causes < CAUSES_MAX) text += `\n\ncaused by ${describe(cause, causes + 1)}`;
  return text;
}

/** Returns the text of an error that a handler throws on purpose, without its stack. */
function told(thrown: Error): string {
  const head = thrown.message || thrown.name;
  return thrown.cause === undefined ? head : `${head}\n\n${describe(thrown.cause)}`;
}
