// Makes calls: it sends requests to nodes until a call is settled or its time is over.

import { shared } from "#platform";
import { ClaimqError, NotAuthorized, NotAvailable, NotFound, OutcomeUnknown, RateLimited, Closed, family, statusOf } from "./errors.js";
import { Nodes } from "./nodes.js";
import { broken, decides, judge, Repeats, type Verdict } from "./repeat.js";
import type { Settings } from "./settings.js";
import { Broken, type Reply } from "./transport.js";

/**
 * A try gets half of the call's remaining time, within these bounds, so that a node that hangs leaves
 * time for another.
 */
const TRY_MIN_MS = 100;
const TRY_MAX_MS = 30_000;

/** How long a node that got a request may stay silent, unless the request lets it. */
const HEAD_MAX_MS = 5_000;

/** How much longer than the server may hold it back an answer takes at most. */
export const WAIT_GRACE_MS = 3_000;

/** How long a node may say nothing on a stream: it sends a comment every 3 s. */
const STREAM_SILENCE_MS = 9_000;

/** Bounds the bytes of an answer; the server's own bound is below. */
const ANSWER_MAX = 24 << 20;

/** Bounds the characters of one line of a stream. */
const LINE_MAX = 1 << 20;

/**
 * The number of tries of calls, and of long polls, under way at once; more wait for their turn, within
 * their timeouts. Each has a connection, of which a node has a bounded number.
 */
const CALLS_MAX = 128;
const POLLS_MAX = 512;

/** A call of the HTTP API. */
export interface Request {
  readonly method: string;
  /** As /api/tasks?limit=10, percent-encoded. */
  readonly path: string;
  /** JSON. */
  readonly body?: string | undefined;
  /** A call that may have been done may be made again; a GET always may. */
  readonly repeatable?: boolean;
  /** That a repeat finds nothing means that an earlier try has deleted it. */
  readonly deletes?: boolean;
  /** For how long the server may hold its answer back. */
  readonly waitMs?: number;
}

/** What every call takes. */
export interface CallOptions {
  /** How many milliseconds the call may take with its repeats; the client's if it is not given. */
  timeoutMs?: number;
  /** Ends the call when it is aborted, which then rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** A JSON object that was answered. */
export type Answer = Record<string, unknown>;

/** What one try came to. */
interface Judged {
  verdict: Verdict;
  /** Undefined of a success and a redirect only. */
  error?: ClaimqError;
  data?: Answer;
  location?: string;
  /** A whole answer came. */
  heard: boolean;
}

/** Lets a bounded number of tries be under way. */
class Gate {
  #free: number;
  #waiting = new Set<() => void>();

  constructor(max: number) {
    this.#free = max;
  }

  /**
   * Waits for a turn for at most ms milliseconds (Infinity: without a limit), and reports whether it
   * came.
   */
  async enter(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    const clock = new Clock(signal);
    if (ms < Infinity) clock.limit(ms);
    const came = await new Promise<boolean>((resolve) => {
      const go = () => resolve(true);
      this.#waiting.add(go);
      clock.signal.addEventListener("abort", () => resolve(!this.#waiting.delete(go)));
    });
    clock.stop();
    return came;
  }

  /** Gives the turn to the one who waits longest. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
    } else {
      this.#waiting.delete(next);
      next();
    }
  }
}

/** Where the tries of one call go. */
class Route {
  #nodes: Nodes;
  /** The leader that a node named, for the next try. */
  #to = "";
  /** The next try is not to ask for the leader. */
  #passOn = false;
  /** Endpoints that do not know the key. */
  #unknown = new Set<string>();

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** Returns the base URL, whether to ask for the leader, and whether it was named. */
  next(): { base: string; redirect: boolean; followed: boolean } {
    if (this.#to) {
      const base = this.#to;
      this.#to = "";
      return { base, redirect: true, followed: true };
    }
    const [base, redirect] = this.#nodes.pick(performance.now());
    const passOn = this.#passOn;
    this.#passOn = false;
    return { base, redirect: redirect && !passOn, followed: false };
  }

  /** Takes the leader that the node at base named; returns false if it is of no use. */
  follow(base: string, location: string): boolean {
    const to = this.#nodes.follow(base, location, performance.now());
    this.#to = to ?? "";
    this.#passOn = !to;
    return to !== undefined;
  }

  /** Notes that the node at base does not know the key; returns false once every endpoint has said so. */
  isNews(base: string): boolean {
    if (this.#nodes.endpoints.includes(base)) this.#unknown.add(base);
    return this.#unknown.size < this.#nodes.endpoints.length;
  }
}

/** Makes the calls of one client. */
export class Core {
  readonly timeoutMs: number;
  #nodes: Nodes;
  #settings: Settings;
  #calls = new Gate(CALLS_MAX);
  #polls = new Gate(POLLS_MAX);
  #closing = new AbortController();

  constructor(settings: Settings) {
    this.timeoutMs = settings.timeoutMs;
    this.#settings = settings;
    this.#nodes = new Nodes(settings.endpoints);
  }

  close(): void {
    this.#closing.abort(new Closed("the client was closed"));
    this.#settings.transport.close();
  }

  /**
   * Makes the request until it is settled or its time is over, which is the client's timeout and
   * what the request lets the server wait, unless the options say otherwise.
   */
  async call(request: Request, options: CallOptions = {}): Promise<Answer> {
    this.#closing.signal.throwIfAborted();
    options.signal?.throwIfAborted();
    const repeats = new Repeats(request.method !== "GET", request.repeatable ?? true);
    const limit = options.timeoutMs ?? this.timeoutMs + (request.waitMs ?? 0);
    const deadline = performance.now() + limit;
    const requestId = randomHex();
    const route = new Route(this.#nodes);
    let before: ClaimqError | undefined; // of the try before
    let refused: ClaimqError | undefined; // of the newest try that a node answered
    let refusedAt = 0; // which that was
    for (;;) {
      // A long poll has its turn already.
      if (!request.waitMs && !(await this.#calls.enter(deadline - performance.now(), options.signal))) {
        options.signal?.throwIfAborted();
        throw givenUp(repeats, before ?? new NotAvailable("its turn did not come: too many calls of the client are under way", { requestId }), requestId);
      }
      const { base, redirect, followed } = route.next();
      const key = this.#settings.key();
      const headers = requestHeaders(key, requestId);
      if (request.body !== undefined) headers["Content-Type"] = "application/json";
      if (redirect) headers["X-Claimq-Redirect"] = "1";
      const judged = await this.#try(base, request, headers, requestId, deadline - performance.now(), options.signal)
        .finally(() => request.waitMs || this.#calls.leave());
      if (judged.heard) this.#nodes.answered(base, followed);
      if (judged.error instanceof NotAuthorized && judged.error.status === 401) {
        // The file may have a newer token by now, another node may know the key.
        if (this.#settings.key() !== key || route.isNews(base)) judged.verdict = "unwritten";
      }
      let action = repeats.next(judged.verdict);
      if (action === "follow") {
        if (route.follow(base, judged.location ?? "")) continue;
        action = repeats.lost();
      }
      if (action === "take") {
        const { data, error } = judged;
        if (error === undefined) return data!;
        if (!decides(error.status, error.code)) throw givenUp(repeats, error, requestId);
        if (request.deletes && repeats.doubted && error instanceof NotFound) return {};
        throw error;
      }
      let error = judged.error ?? new NotAvailable(`${base} redirects to ${JSON.stringify(judged.location)}`, { requestId });
      if (action === "give_up") throw givenUp(repeats, error, requestId);
      const now = performance.now();
      const asked = this.#leave(base, judged, now);
      if (now >= deadline && before !== undefined && !judged.heard) error = before; // that this try was cut off says nothing of the server
      before = error;
      if (error.status) [refused, refusedAt] = [error, repeats.tries];
      const pause = pauseBefore(repeats, asked, deadline - now);
      if (pause === undefined) {
        // A refusal says more than that another node is not there.
        if (refused !== undefined && repeats.tries - refusedAt < this.#nodes.endpoints.length) error = refused;
        const tries = repeats.tries === 1 ? "1 try" : `${repeats.tries} tries`;
        throw givenUp(repeats, error, requestId, `given up after ${limit / 1000} s and ${tries}`);
      }
      await sleep(pause, options.signal);
    }
  }

  /**
   * Makes a long poll when its turn comes, and returns its result; undefined if the turn did not come
   * within ms milliseconds.
   */
  async poll<T>(ms: number, signal: AbortSignal | undefined, make: () => Promise<T>): Promise<T | undefined> {
    if (!(await this.#polls.enter(ms, signal))) {
      signal?.throwIfAborted();
      return undefined;
    }
    try {
      return await make();
    } finally {
      this.#polls.leave();
    }
  }

  /** Makes one try; it rejects with the reason of the signal only. */
  async #try(
    base: string, request: Request, headers: Record<string, string>, requestId: string, left: number, signal?: AbortSignal,
  ): Promise<Judged> {
    const { method, path, body, waitMs = 0 } = request;
    const most = waitMs > 0 ? WAIT_GRACE_MS : TRY_MAX_MS;
    const total = waitMs + Math.min(Math.max((left - waitMs) / 2, TRY_MIN_MS), most);
    const end = performance.now() + total;
    const clock = new Clock(signal);
    try {
      clock.limit(waitMs > 0 ? total : Math.min(total, HEAD_MAX_MS));
      const reply = await this.#settings.transport.send({ base, method, path, headers, body, signal: clock.signal });
      clock.limit(end - performance.now());
      return judgeReply(request, base, reply, await reply.text(ANSWER_MAX), requestId);
    } catch (e) {
      signal?.throwIfAborted();
      if (clock.signal.aborted) this.#settings.transport.distrust(base);
      return unanswered(base, e, requestId);
    } finally {
      clock.stop();
    }
  }

  /**
   * Records what a failed try shows about its node, and returns the time to wait before the next. It waits as
   * long as the node asks only if no other node can be asked: another may know the leader, or not be
   * stopping.
   */
  #leave(base: string, { verdict, error, heard }: Judged, now: number): number {
    if (verdict === "redirected") {
      this.#nodes.shun(now);
      return 0;
    }
    const asked = error?.retryAfterMs ?? 0;
    if (error !== undefined && error.details.reason !== "issuer") {
      // Another node would count alike, or pass it on.
      if (error instanceof RateLimited || error.code === "overloaded") return asked;
    }
    if (heard) this.#nodes.failed(base, now);
    else this.#nodes.silent(base, now);
    if (asked > 0) this.#nodes.hold(base, asked, now);
    return this.#nodes.wait(now);
  }

  /**
   * Walks the trail of events as it grows, each once and in order. path is the path of the events, with
   * filters. When a connection ends it continues at another node from the same position; it throws
   * what no other node would answer differently.
   */
  async *follow(path: string, after: string, signal?: AbortSignal): AsyncGenerator<Answer, never> {
    const repeats = new Repeats(false, true);
    const route = new Route(this.#nodes);
    const clock = new Clock(signal, this.#closing.signal);
    try {
      for (;;) {
        clock.signal.throwIfAborted();
        const { base } = route.next();
        const key = this.#settings.key();
        const requestId = randomHex();
        let judged: Judged;
        let reply: Reply | undefined;
        const quiet = new Clock(clock.signal);
        try {
          quiet.limit(STREAM_SILENCE_MS);
          const headers = { ...requestHeaders(key, requestId), Accept: "text/event-stream" };
          const at = after ? `${path}${path.includes("?") ? "&" : "?"}after=${after}` : path;
          reply = await this.#settings.transport.send({ base, method: "GET", path: at, headers, body: undefined, signal: quiet.signal });
          if (reply.status === 200 && reply.header("content-type").startsWith("text/event-stream")) {
            this.#nodes.answered(base, false);
            judged = { verdict: "unwritten", heard: true, error: new NotAvailable(`stream of events from ${base}: it ended`) };
            for await (const message of messages(reply, quiet)) {
              if (message.event === "error") {
                const refusal = objectOf(message.data ?? "") ?? {};
                const error = refusalOf(refusal, statusOf(String(refusal.code)), "", requestId);
                judged = { verdict: judge(error.status, error.code), heard: true, error };
                break;
              }
              const event = message.data ? objectOf(message.data) : undefined;
              if (event !== undefined) {
                after = `${event.index}.${event.sub}`;
                repeats.tries = 0;
                quiet.pause();
                yield event;
                clock.signal.throwIfAborted();
              } else if (message.id) {
                after = message.id; // a place without an event: nothing is missed up to it
              }
            }
          } else {
            judged = judgeReply({ method: "GET", path }, base, reply, await reply.text(ANSWER_MAX), requestId);
          }
        } catch (e) {
          clock.signal.throwIfAborted();
          judged = unanswered(base, e, requestId);
        } finally {
          quiet.stop();
          reply?.cancel();
        }
        const error = judged.error ?? new ClaimqError("the answer is no stream of events", { requestId });
        if (error instanceof NotAuthorized && error.status === 401) {
          if (this.#settings.key() !== key || route.isNews(base)) judged.verdict = "unwritten";
        }
        if (judged.verdict === "settled") throw error;
        this.#nodes.failed(base, performance.now());
        repeats.tries++;
        await sleep(repeats.pause(0, Math.random), clock.signal);
      }
    } finally {
      clock.stop();
    }
  }
}

/** A signal that is aborted with others, or when a time is over. */
class Clock {
  readonly signal: AbortSignal;
  #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #others: AbortSignal[];
  #abort = () => this.#controller.abort(this.#others.find((s) => s.aborted)?.reason);

  constructor(...others: (AbortSignal | undefined)[]) {
    this.signal = this.#controller.signal;
    this.#others = others.filter((s) => s !== undefined);
    for (const other of this.#others) {
      if (other.aborted) this.#abort();
      shared(other);
      other.addEventListener("abort", this.#abort);
    }
  }

  /** Sets when its time is over, from now on. */
  limit(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(new Error("no answer in time")), ms);
  }

  /** Lets its time stand still until the next limit(). */
  pause(): void {
    clearTimeout(this.#timer);
  }

  stop(): void {
    clearTimeout(this.#timer);
    for (const other of this.#others) other.removeEventListener("abort", this.#abort);
  }
}

/** Reads the messages of a stream of events until it ends. */
async function* messages(reply: Reply, quiet: Clock): AsyncGenerator<Record<string, string>> {
  const decoder = new TextDecoder();
  let rest = "";
  let message: Record<string, string> = {};
  for await (const chunk of reply.chunks()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (rest.length > LINE_MAX) return;
    for (const whole of lines) {
      const line = whole.endsWith("\r") ? whole.slice(0, -1) : whole;
      if (line !== "") {
        const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
        message[name] = value;
        continue;
      }
      yield message;
      message = {};
    }
    quiet.limit(STREAM_SILENCE_MS);
  }
}

function requestHeaders(key: string, requestId: string): Record<string, string> {
  const headers: Record<string, string> = {
    Accept: "application/json",
    "User-Agent": "claimq-typescript",
    "X-Request-ID": requestId,
  };
  if (key) headers["X-API-Key"] = key;
  return headers;
}

/** Decides what a try came to that has no whole answer. */
function unanswered(base: string, e: unknown, requestId: string): Judged {
  const { message, sent } = e instanceof Broken ? e : new Broken(e, true);
  const error = new NotAvailable(`${base}: ${message}`, { requestId, cause: e });
  return { verdict: broken(sent), error, heard: false };
}

/** Decides what a whole answer means. text is undefined if it is too large. */
function judgeReply(request: Request, base: string, reply: Reply, text: string | undefined, requestId: string): Judged {
  if (text === undefined) {
    const kind = request.method === "GET" ? ClaimqError : OutcomeUnknown;
    return { verdict: "settled", error: new kind(`${base}: the answer is too large`, { requestId }), heard: true };
  }
  const { status } = reply;
  const data = objectOf(text);
  if (status >= 200 && status < 300 && data?.success === true) return { verdict: "settled", data, heard: true };
  const location = reply.header("location");
  if (status === 307 && location.endsWith(request.path)) return { verdict: "redirected", location, heard: true };
  if (status >= 400 && data !== undefined && isOurs(data)) {
    const error = refusalOf(data, status, reply.header("retry-after"), requestId);
    return { verdict: judge(status, error.code), error, heard: true };
  }
  // A proxy's: what it has in its fields is not what we mean by them.
  const init = { status, requestId, retryAfterMs: retryAfterMs(reply.header("retry-after")) };
  const error = new (status < 400 ? ClaimqError : NotAvailable)(`the answer of ${base} is not claimq's`, init);
  return { verdict: judge(status, ""), error, heard: true };
}

function objectOf(text: string): Answer | undefined {
  try {
    const data: unknown = JSON.parse(text);
    return typeof data === "object" && data !== null && !Array.isArray(data) ? (data as Answer) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reports whether a refusal is a node's: it has a code that is known here, or, of a later
 * version, all that a refusal has.
 */
function isOurs({ code, error, request_id }: Answer): boolean {
  return typeof code === "string" && code !== "" && (statusOf(code) !== 0 || Boolean(error && request_id));
}

function refusalOf(details: Answer, status: number, retryAfter: string, requestId: string): ClaimqError {
  const text = (name: string) => (typeof details[name] === "string" ? details[name] : "");
  const code = text("code");
  return new (family(code, status))(text("error") || "the call was refused", {
    code,
    advice: text("message"),
    status,
    requestId: text("request_id") || requestId,
    field: text("field"),
    retryAfterMs: retryAfterMs(retryAfter),
    details,
  });
}

/** Returns the header's time; the form with a date is not claimq's. */
function retryAfterMs(value: string): number {
  return /^\d{1,5}$/.test(value) && Number(value) <= 86_400 ? Number(value) * 1000 : 0;
}

/**
 * Returns how long to wait before the next try; undefined if there is no time for one. The server
 * may have asked for more than it takes: where there is not time for all of it, a quarter of what
 * is left is waited.
 */
function pauseBefore(repeats: Repeats, asked: number, left: number): number | undefined {
  const least = repeats.pause(0, Math.random);
  if (left < least) return undefined;
  return least + asked <= left ? least + asked : Math.max(left / 4, least);
}

/** Makes the error of a call that was not settled. */
function givenUp(repeats: Repeats, last: ClaimqError, requestId: string, why = ""): ClaimqError {
  const { code, advice, status, field, retryAfterMs, details, cause } = last;
  const id = last.requestId || requestId;
  const reason = why ? `${last.reason}, ${why}` : last.reason;
  const told = new (last.constructor as typeof ClaimqError)(reason, { code, advice, status, requestId: id, field, retryAfterMs, details, cause });
  if (!repeats.doubted || last instanceof OutcomeUnknown) return told;
  return new OutcomeUnknown(`it may have been done: ${told.message}`, {
    code: "outcome_unknown", status, requestId: id, retryAfterMs, cause: told,
  });
}

/** Waits ms milliseconds, or rejects with the reason of the signal. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
  signal?.throwIfAborted();
}

/** Returns 32 random digits of hexadecimal. */
export function randomHex(): string {
  return crypto.randomUUID().replaceAll("-", "");
}
