// Decides what a client does after one try of a call. This is Go's internal/repeat, and is held
// to the same vectors (clients/vectors.json). It uses no clock, network or randomness.

const PAUSE_MIN_MS = 20;
const PAUSE_MAX_MS = 1_000;

/**
 * The number of redirects in a row that are followed without a pause: while leadership changes, two
 * nodes may name each other.
 */
const REDIRECTS_MAX = 2;

/**
 * How long one request of a long poll waits at most, so that a connection that died without a
 * word is left within 10 s.
 */
export const POLL_MAX_MS = 6_000;

/**
 * What one try came to. settled: answered, with success or a refusal that will not change;
 * redirected: nothing was written, another node leads; unwritten: nothing was written, it may
 * work later or elsewhere; unknown: it may have been done.
 */
export type Verdict = "settled" | "redirected" | "unwritten" | "unknown";

/**
 * What to do after a try. follow: ask the node that was named, at once; wait: pause, then try
 * again; give_up: the outcome is unknown, and a repeat might do harm.
 */
export type Action = "take" | "follow" | "wait" | "give_up";

/**
 * Returns the verdict on a whole answer that is neither a success nor a redirect. code is "" for
 * an answer that is not claimq's: it comes from a proxy, and its status says nothing about the node
 * behind it.
 */
export function judge(status: number, code: string): Verdict {
  if (code === "" || code === "outcome_unknown" || status < 300) return "unknown";
  if (code === "internal") return "settled"; // final: the server logged it
  return status < 500 && status !== 429 ? "settled" : "unwritten";
}

/**
 * Reports whether a refusal also says what earlier tries of the call did. A refusal of the key,
 * or a fault of the server, comes before the request is looked at.
 */
export function decides(status: number, code: string): boolean {
  return code !== "" && status !== 401 && status !== 403 && status !== 500;
}

/**
 * Returns the verdict on a try without a whole answer. sent says whether bytes of the request may
 * have left.
 */
export function broken(sent: boolean): Verdict {
  return sent ? "unknown" : "unwritten";
}

/** The state of one call over its tries. */
export class Repeats {
  /** Counts next(). */
  tries = 0;
  /** A try may have been done, or may still be. */
  doubted = false;
  #mutation: boolean;
  #repeatable: boolean;
  #redirects = 0;

  /**
   * @param mutation It may change something, as a GET does not.
   * @param repeatable The server recognizes a repeat, or a repeat does no harm.
   */
  constructor(mutation: boolean, repeatable: boolean) {
    this.#mutation = mutation;
    this.#repeatable = repeatable;
  }

  /** Takes the verdict on a try and returns what to do. */
  next(verdict: Verdict): Action {
    this.tries++;
    if (verdict === "settled") return "take";
    if (verdict === "redirected") {
      if (++this.#redirects <= REDIRECTS_MAX) return "follow";
      this.#redirects = 0;
    } else if (verdict === "unknown" && this.#mutation) {
      this.doubted = true;
      if (!this.#repeatable) return "give_up";
    }
    return "wait";
  }

  /** Takes back a follow: the node that was named is of no use. */
  lost(): Action {
    this.#redirects = 0;
    return "wait";
  }

  /**
   * Returns the milliseconds to wait before the next try. askedMs is the server's request, in addition
   * to the client's own pause, which is doubled for each try. random returns a number
   * in [0, 1): up to half of the pause is taken off, to keep clients apart.
   */
  pause(askedMs: number, random: () => number): number {
    const own = Math.min(PAUSE_MIN_MS * 2 ** Math.max(this.tries - 1, 0), PAUSE_MAX_MS);
    return own - (random() * own) / 2 + Math.max(askedMs, 0);
  }
}

const MARKED = new Set(["submit", "claim", "complete", "fail", "extend", "release"]);
const ALWAYS = new Set([
  "cancel", "delete", "patch", "set_type",
  "finalization_claim", "finalization_extend", "finalization_release", "finalize",
]);

/**
 * Reports whether a call that may have been done may be made again. marked says that the call
 * carries what the server recognizes a repeat by: a submit the idempotency key of each task, a
 * claim its request id, a settling call the claim token. A retry is never safe: the task may have
 * been claimed in between, and the repeat would take it from that worker.
 */
export function safe(op: string, marked: boolean): boolean {
  return ALWAYS.has(op) || (marked && MARKED.has(op));
}

/** Reports the same of an op of a batch, where a repeated delete looks like a refusal. */
export function batchSafe(op: string, marked: boolean): boolean {
  return op !== "delete" && safe(op, marked);
}
