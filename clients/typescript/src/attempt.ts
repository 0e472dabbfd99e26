// One attempt at a task: its handler runs, and an outcome comes of it, whatever is thrown.

import { inspect } from "node:util";
import { encodeProgress, type Limits } from "./encode.js";
import { Cancelled, type Context, type Handler, Permanent, type Reason, RetryAfter, Snooze } from "./handler.js";
import { type NewTask, newTask, parse } from "./task.js";

/** The handler returned: the task is completed. */
export interface Done<R = unknown> {
  readonly kind: "done";
  /** What it returned. */
  readonly result: R;
  /** What it had submitted by followUp. */
  readonly followUps: readonly NewTask[];
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
  /** For so many milliseconds. */
  readonly afterMs: number;
}

/** How an attempt ended. */
export type Outcome<R = unknown> = Done<R> | Failed | Snoozed;

/** What a context is made of. */
export type Fields = Pick<Context, "id" | "token" | "type" | "attempt"> & Partial<Context>;

/** An attempt under way. */
export class Attempt {
  readonly context: Context;
  readonly #followUps: NewTask[] = [];
  readonly #controller = new AbortController();

  /** Takes what the cluster takes, what is done with progress as JSON, and how long the handler has. */
  constructor(fields: Fields, limits: Limits, report: (json: string) => void, timeoutMs = Infinity) {
    const end = performance.now() + timeoutMs;
    this.context = {
      labels: {},
      traceparent: undefined,
      parentId: undefined,
      step: undefined,
      dependencies: {},
      dependenciesLeftOut: false,
      signal: this.#controller.signal,
      left: () => Math.max(end - performance.now(), 0),
      progress: (value) => report(encodeProgress(value, limits)),
      followUp: (type, ...rest) => {
        if (this.#followUps.length >= limits.submit) throw new RangeError(`a task has at most ${limits.submit} follow-ups`);
        this.#followUps.push(newTask(type, ...rest));
      },
      ...fields,
    };
  }

  /** Tells the handler to stop. */
  cancel(reason: Reason): void {
    this.#controller.abort(new Cancelled(reason)); // the first counts
  }

  /** Runs the handler. It never throws. */
  async run<Data, Result, Parsed>(handler: Handler<Data, Result, Parsed>, params: unknown): Promise<Outcome<Result>> {
    try {
      const result = await handler.run(parse(handler.type, params), this.context);
      return { kind: "done", result, followUps: this.#followUps };
    } catch (e) {
      return this.outcomeOf(e);
    }
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

const UNREADABLE = "the handler threw something that cannot be read";

/** How many causes behind each other are told. */
const CAUSES_MAX = 5;

/**
 * Returns what was thrown as text: first what it says, by which failures are grouped, then its
 * stack and its causes. What else an error carries may be nobody's business, as a request's headers.
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

/** Returns as text what was thrown on purpose: of its stack nobody has anything to learn. */
function told(thrown: Error): string {
  const head = thrown.message || thrown.name;
  return thrown.cause === undefined ? head : `${head}\n\n${describe(thrown.cause)}`;
}
