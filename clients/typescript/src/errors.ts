import type { components } from "./api.js";
import type { Submitted } from "./client.js";

/** What programs go by; docs/api.md lists them. */
export type Code = components["schemas"]["Code"];

/** What is known of an error. */
export interface ErrorInit {
  code?: string;
  advice?: string;
  status?: number;
  requestId?: string;
  field?: string;
  retryAfterMs?: number;
  details?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

/**
 * An error of a call. Its message says what happened and what to do. Catch the class of a family
 * to decide what to do, and look at `code` where it matters which one it was.
 *
 *     ClaimqError
 *     ├── OutcomeUnknown      it may have been done, or may still be: repeat it with its key
 *     ├── NotAvailable        nothing was done; the cluster could not be reached or cannot now
 *     │   └── RateLimited     the API key has made its requests
 *     ├── NotAuthorized       the API key is unknown, or its role does not allow the call
 *     ├── Invalid             the request is malformed, `field` says where
 *     │   └── TooLarge        it is larger than the server takes
 *     ├── NotFound            there is no such task, schedule or path
 *     ├── Conflict            the state does not allow it
 *     │   └── StaleClaim      the claim is over: stop working on the task
 *     ├── EventsGone          the events asked for are not kept any more
 *     ├── ServerFault         a bug of the server
 *     ├── SubmitManyError     some of many tasks were not submitted
 *     └── Closed              the client was closed
 */
export class ClaimqError extends Error {
  /** What programs go by: a code of docs/api.md, "" if a server did not give one. */
  readonly code: Code | "" | (string & {});
  /** What happened, for people. */
  readonly reason: string;
  /** What to do, for people; "" if nothing is known. */
  readonly advice: string;
  /** The status of HTTP; 0 if there was no answer. */
  readonly status: number;
  /** What the server's log calls the request. */
  readonly requestId: string;
  /** The field, header or parameter that is wrong, as tasks[3].priority; "" if none is. */
  readonly field: string;
  /** How many milliseconds the server asks to wait before a repeat; 0 if it does not say. */
  readonly retryAfterMs: number;
  /** The whole body of the refusal, including the fields of its code. Empty without a body. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(reason: string, init: ErrorInit = {}) {
    const { code = "", advice = "", status = 0 } = init;
    const told = code ? ` (${code})` : status ? ` (HTTP status ${status})` : "";
    super(reason + told + (advice && advice !== reason ? `: ${advice}` : ""), { cause: init.cause });
    this.name = new.target.name;
    this.code = code;
    this.reason = reason;
    this.advice = advice;
    this.status = status;
    this.requestId = init.requestId ?? "";
    this.field = init.field ?? "";
    this.retryAfterMs = init.retryAfterMs ?? 0;
    this.details = init.details ?? {};
  }
}

/**
 * The call may or may not have been done, or may still be done. A repeat settles it: a submit
 * with the same key finds the task that the first one made. `cause` is the error of the last try.
 */
export class OutcomeUnknown extends ClaimqError {}

/**
 * Nothing was done: no node could be reached, or the cluster has no leader, is overloaded or
 * shuts down. Try again later.
 */
export class NotAvailable extends ClaimqError {}

/** Nothing was done: the API key has made as many requests as it may. */
export class RateLimited extends NotAvailable {}

/** The API key is missing or unknown, or its role or task types do not allow the call. */
export class NotAuthorized extends ClaimqError {}

/** The request is malformed; `field` names what is wrong. A repeat gets the same. */
export class Invalid extends ClaimqError {}

/** The body, or the field in `field`, is larger than the server takes. */
export class TooLarge extends Invalid {}

/** There is no such task, schedule or path; a task may have been removed. */
export class NotFound extends ClaimqError {}

/** The state does not allow it: `code` says why, `details` has the task's status. */
export class Conflict extends ClaimqError {}

/** The claim is over, or another worker holds the task. Nothing was changed. */
export class StaleClaim extends Conflict {}

/** The events asked for are not kept any more; `details.oldest` is the first that is. */
export class EventsGone extends ClaimqError {}

/** A bug of the server; its log has the reason under `requestId`. */
export class ServerFault extends ClaimqError {}

/** The client was closed. */
export class Closed extends ClaimqError {}

/**
 * Some tasks of submitMany were not submitted, or perhaps not. Submit those with an error again,
 * with the same keys, unless the error is Invalid.
 */
export class SubmitManyError extends ClaimqError {
  /** The outcome of each task, in order: what submit resolves with, or the error of it. */
  readonly results: readonly (Submitted | ClaimqError)[];

  constructor(results: readonly (Submitted | ClaimqError)[]) {
    const errors = results.filter((r) => r instanceof ClaimqError);
    super(`${errors.length} of ${results.length} tasks were not submitted: ${errors[0]?.message}`);
    this.results = results;
  }
}

type Family = new (reason: string, init?: ErrorInit) => ClaimqError;

/** The HTTP status and the class of each code. */
const CODES: Readonly<Record<Code, readonly [status: number, family: Family]>> = {
  invalid_request: [400, Invalid],
  invalid_task: [400, Invalid],
  invalid_worker_id: [400, Invalid],
  unauthorized: [401, NotAuthorized],
  forbidden: [403, NotAuthorized],
  task_not_found: [404, NotFound],
  no_pending_tasks: [404, NotFound],
  schedule_not_found: [404, NotFound],
  not_found: [404, NotFound],
  method_not_allowed: [405, Invalid],
  task_already_claimed: [409, Conflict],
  task_not_claimed: [409, Conflict],
  task_not_claimable: [409, Conflict],
  wrong_worker: [409, StaleClaim],
  stale_claim: [409, StaleClaim],
  task_completed: [409, Conflict],
  task_failed: [409, Conflict],
  task_cancelled: [409, Conflict],
  task_not_terminal: [409, Conflict],
  max_attempts_reached: [409, Conflict],
  steps_unfinished: [409, Conflict],
  count_mismatch: [409, Conflict],
  key_taken: [409, Conflict],
  cluster_not_empty: [409, Conflict],
  membership_refused: [409, Conflict],
  place_ahead: [409, Conflict],
  events_gone: [410, EventsGone],
  payload_too_large: [413, TooLarge],
  unsupported_encoding: [415, Invalid],
  rate_limited: [429, RateLimited],
  headers_too_large: [431, Invalid],
  internal: [500, ServerFault],
  overloaded: [503, NotAvailable],
  no_leader: [503, NotAvailable],
  shutting_down: [503, NotAvailable],
  outcome_unknown: [504, OutcomeUnknown],
};

/** Returns the HTTP status of a code, 0 of one that is not known here. */
export function statusOf(code: string): number {
  return Object.hasOwn(CODES, code) ? CODES[code as Code][0] : 0;
}

/** Returns the class of a refusal; of a code of a later version it goes by the status. */
export function family(code: string, status: number): Family {
  if (Object.hasOwn(CODES, code)) return CODES[code as Code][1];
  if (!code || status === 503) return NotAvailable;
  if (status === 401 || status === 403) return NotAuthorized;
  if (status === 404) return NotFound;
  if (status === 409) return Conflict;
  return status >= 400 && status < 500 ? Invalid : ClaimqError;
}
