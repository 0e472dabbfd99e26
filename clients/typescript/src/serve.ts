// Takes tasks from `claimq work --serve`: the protocol of docs/protocol.md, "Served programs".
//
// One event loop reads, writes and runs the handlers. They may print freely, because the socket is not
// a standard stream.

import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { connect, Socket } from "node:net";
import process from "node:process";
import { Attempt, type Outcome } from "./attempt.js";
import { cut, encodeDone, fits, type Limits, LIMITS } from "./encode.js";
import { CONCURRENCY_MAX, type Handler, integer, type Reason } from "./handler.js";
import { runOnce } from "./once.js";

const PROTOCOL = 1;

/** Bounds the bytes of a line of claimq's. */
const LINE_MAX = 8 << 20;

/** From how many characters on lines are written without waiting for others. */
const TOGETHER = 64 << 10;

/** How serve works. */
export interface ServeOptions {
  /** How many tasks the process takes at once in all, 1 to 1,000; 10 if left out. */
  readonly concurrency?: number;
}

/** claimq sent what this side does not understand. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/**
 * Works off tasks until claimq says stop: what a program does that `claimq work --serve` starts.
 *
 *     await serve([handle(mail, { concurrency: 5, timeoutMs: 60_000 }, send)]);
 *
 * It returns once all is done and answered; claimq then gives the process a second to end. Run by
 * hand, `node worker.js --task TYPE --params JSON` runs one handler without claimq.
 *
 * @throws {RangeError} concurrency or the number of handlers is out of bounds.
 * @throws {TypeError} Two handlers have one type.
 * @throws {ProtocolError} claimq sent what this side does not understand.
 * @throws {Error} There is no claimq; or it closed the socket, and a handler did not end in its time.
 */
export async function serve(handlers: readonly Handler[], options: ServeOptions = {}): Promise<void> {
  const { concurrency = 10 } = options;
  integer("concurrency", concurrency, CONCURRENCY_MAX);
  integer("the number of handlers", handlers.length, CONCURRENCY_MAX);
  const byType = new Map(handlers.map((handler) => [handler.type.name, handler]));
  if (byType.size < handlers.length) throw new TypeError("two handlers have one type");
  const socket = dial();
  if (socket === undefined) return runOnce(byType);
  await new Server(socket, byType, concurrency).run();
}

/**
 * Returns the socket to claimq; undefined without one. The variables that name it are removed from the
 * environment, so that child processes of handlers do not use it.
 */
function dial(): Socket | undefined {
  const { CLAIMQ_FD: fd, CLAIMQ_SOCKET: path } = process.env;
  delete process.env["CLAIMQ_FD"];
  delete process.env["CLAIMQ_SOCKET"];
  if (fd) {
    // claimq says when to stop; a terminal and a supervisor signal it, too.
    for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => {});
    const descriptor = { fd: Number(fd), readable: true, writable: true };
    // Bun 1.4 connects to what is connected, and knows no Socket of a descriptor.
    return "Bun" in globalThis ? connect(descriptor as never) : new Socket(descriptor);
  }
  return path ? connect(path.replace(/^unix:/, "")) : undefined;
}

/** A task that has not been answered. */
interface Job {
  readonly key: string;
  /** The fields that name it in a message. */
  readonly named: string;
  readonly attempt: Attempt;
}

/** What claimq says; which fields are there goes by its kind. */
interface Message {
  kind: string;
  protocol: number;
  limits: Limits;
  grace_ms: number;
  id: number;
  token: number;
  type: string;
  attempt: number;
  params?: unknown;
  payload?: string;
  labels?: Record<string, string>;
  attributes?: Record<string, unknown>;
  signal?: unknown;
  traceparent?: string;
  parent_id?: number;
  step?: string;
  dependencies?: Record<string, { result?: unknown; result_payload?: string }>;
  dependencies_left_out?: boolean;
  timeout_ms?: number;
  why: Reason;
}

class Server {
  readonly #socket: Socket;
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #concurrency: number;
  #limits = LIMITS;
  #graceMs = 5_000;
  #greeted = false;
  #stopping = false;
  readonly #jobs = new Map<string, Job>();
  readonly #jobOf = new AsyncLocalStorage<Job>(); // of what a handler has begun
  #pieces: Buffer[] = []; // of a line that has not ended
  #size = 0; // of them together
  // What is to be written: an answer for each task at most, and the last progress of each.
  #answers: string[] = [];
  readonly #progress = new Map<string, string>();
  #woken = false;
  #idle = () => {}; // is told when no task is left

  constructor(socket: Socket, handlers: ReadonlyMap<string, Handler>, concurrency: number) {
    this.#socket = socket;
    this.#handlers = handlers;
    this.#concurrency = concurrency;
  }

  async run(): Promise<void> {
    const onRejection = (thrown: unknown) => this.#uncaught("unhandledRejection", thrown);
    const onException = (thrown: unknown) => this.#uncaught("uncaughtException", thrown);
    process.on("unhandledRejection", onRejection);
    process.on("uncaughtException", onException);
    try {
      const fault = await new Promise<Error | undefined>((resolve) => {
        let fault: Error | undefined;
        this.#socket.on("data", (data: Buffer) => {
          try {
            this.#read(data);
          } catch (e) {
            fault = e as Error;
            this.#socket.destroy();
          }
        });
        this.#socket.on("drain", () => this.#wake());
        this.#socket.on("error", (e) => {
          if (!this.#greeted) fault = e; // later it comes to a close
        });
        this.#socket.on("close", () => resolve(fault));
        this.#say(this.#hello());
      });
      if (fault !== undefined) throw fault;
      if (this.#jobs.size > 0) await this.#abandon();
    } finally {
      process.off("unhandledRejection", onRejection);
      process.off("uncaughtException", onException);
    }
  }

  #hello(): string {
    const types = [...this.#handlers.values()].map(({ type, options }) => ({
      type: type.name,
      concurrency: options.concurrency,
      timeout_ms: options.timeoutMs,
    }));
    const { bun, deno, node } = process.versions;
    const runtime = bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node.js ${node}`;
    const client = `claimq-typescript, ${runtime}`;
    return JSON.stringify({ kind: "hello", protocol: PROTOCOL, types, concurrency: this.#concurrency, client });
  }

  /** Stops all handlers: claimq has gone, and nothing that they say counts any more. */
  async #abandon(): Promise<void> {
    for (const job of this.#jobs.values()) this.#jobOf.run(job, () => job.attempt.cancel("shutdown"));
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
      timer = setTimeout(resolve, this.#graceMs);
    });
    clearTimeout(timer);
    if (this.#jobs.size > 0) {
      throw new Error(`claimq has gone, and ${this.#jobs.size} handlers did not end in ${this.#graceMs} ms`);
    }
  }

  // Reading.

  /** Takes the lines that have ended. They become text together, as one by one that costs more than their JSON. */
  #read(data: Buffer): void {
    const end = data.lastIndexOf(10);
    if (end < 0) return this.#keep(data);
    this.#bound(data.indexOf(10)); // a further line has less than the data
    this.#pieces.push(data.subarray(0, end));
    const lines = Buffer.concat(this.#pieces).toString().split("\n");
    this.#pieces = [];
    this.#size = 0;
    for (const line of lines) {
      try {
        this.#take(JSON.parse(line) as Message);
      } catch (e) {
        throw new ProtocolError(`claimq sent ${JSON.stringify(line.slice(0, 200))}: ${(e as Error).message}`);
      }
    }
    if (end + 1 < data.length) this.#keep(data.subarray(end + 1));
  }

  #keep(piece: Buffer): void {
    this.#bound(piece.length);
    this.#pieces.push(piece);
    this.#size += piece.length;
  }

  /** Throws if that many more bytes make the unfinished line too long. */
  #bound(more: number): void {
    if (this.#size + more > LINE_MAX) throw new ProtocolError(`claimq sent a line of more than ${LINE_MAX} bytes`);
  }

  #take(message: Message): void {
    switch (message.kind) {
      case "task":
        return this.#begin(message);
      case "cancel": {
        const job = this.#jobs.get(keyOf(message)); // none if its answer is under way
        if (job !== undefined) this.#jobOf.run(job, () => job.attempt.cancel(message.why)); // listeners may throw
        return;
      }
      case "stop":
        this.#stopping = true;
        return this.#wake();
      case "hello":
        if (this.#greeted) break;
        if (message.protocol !== PROTOCOL) throw new Error(`it speaks protocol ${message.protocol}, not ${PROTOCOL}`);
        this.#greeted = true;
        this.#limits = message.limits;
        this.#graceMs = message.grace_ms;
        return;
    }
    throw new Error(`the kind ${message.kind} is unknown here`);
  }

  // Working.

  #begin(m: Message): void {
    const handler = this.#handlers.get(m.type);
    if (handler === undefined) throw new Error(`there is no handler of the type ${m.type}`);
    const key = keyOf(m);
    const attempt = new Attempt(
      {
        id: m.id,
        token: m.token,
        type: m.type,
        attempt: m.attempt,
        labels: m.labels ?? {},
        attributes: m.attributes ?? {},
        signalValue: m.signal,
        traceparent: m.traceparent,
        parentId: m.parent_id,
        step: m.step,
        dependencies: m.dependencies === undefined ? {} : results(m.dependencies),
        dependenciesLeftOut: m.dependencies_left_out ?? false,
      },
      this.#limits,
      (json) => this.#report(job, json),
      m.timeout_ms,
    );
    const job: Job = { key, named: `"id":${m.id},"token":${m.token}`, attempt };
    this.#jobs.set(key, job);
    const params = m.payload === undefined ? m.params : Buffer.from(m.payload, "base64");
    this.#jobOf.run(job, () => attempt.start(handler, params, (outcome) => this.#answer(job, outcome)));
  }

  /** Answers a task, once. */
  #answer(job: Job, outcome: Outcome): void {
    if (!this.#jobs.delete(job.key)) return;
    if (this.#jobs.size === 0) this.#idle();
    this.#say(this.#line(job, outcome));
  }

  /** Returns the answer of a task; one that claimq would not take fails for good. */
  #line({ named }: Job, outcome: Outcome): string {
    const { error_bytes, line_bytes } = this.#limits;
    const fail = (error: string, how = "") => `{"kind":"fail",${named},"error":${JSON.stringify(cut(error, error_bytes))}${how}}`;
    if (outcome.kind === "snoozed") return `{"kind":"snooze",${named},"ms":${outcome.afterMs}}`;
    if (outcome.kind === "failed") {
      const { error, permanent, retryInMs } = outcome;
      return fail(error, permanent ? `,"permanent":true` : retryInMs === undefined ? "" : `,"retry_in_ms":${retryInMs}`);
    }
    try {
      const line = `{"kind":"done",${named}${encodeDone(outcome, this.#limits)}}`;
      fits("the answer", line, line_bytes - 1);
      return line;
    } catch (e) {
      return fail((e as Error).message, `,"permanent":true`);
    }
  }

  #report(job: Job, json: string): void {
    if (this.#jobs.get(job.key) !== job) return; // it was answered
    this.#progress.set(job.key, `{"kind":"progress",${job.named},"progress":${json}}`);
    this.#wake();
  }

  /** Fails the attempt of the handler that started the work whose error was not caught. */
  #uncaught(event: string, thrown: unknown): void {
    // Runtimes do not always say whose it was (docs/typescript.md). That of the only one is clear.
    const job = this.#jobOf.getStore() ?? (this.#jobs.size === 1 ? [...this.#jobs.values()][0] : undefined);
    if (job === undefined) {
      if (process.listenerCount(event) > 1) return; // the program's own decides
      console.error(thrown);
      process.exit(1); // as without a listener
    }
    const outcome = job.attempt.outcomeOf(thrown);
    if (this.#jobs.has(job.key)) {
      job.attempt.cancel("failed");
      this.#answer(job, outcome);
    } else if (outcome.kind === "failed") {
      console.error(`task ${job.attempt.context.id} was answered, and then what it had begun failed: ${outcome.error}`);
    }
  }

  // Writing.

  #say(line: string): void {
    this.#answers.push(line);
    this.#wake();
  }

  /** Has all be written that is said in this turn of the loop. */
  #wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    process.nextTick(() => this.#write());
  }

  /** The one writer. While the socket takes no more, only the last progress of each task is kept. */
  #write(): void {
    this.#woken = false;
    if (this.#socket.writableNeedDrain || !this.#socket.writable) return;
    const lines = [...this.#progress.values(), ...this.#answers];
    this.#progress.clear();
    this.#answers = [];
    let text = "";
    for (const line of lines) {
      text += `${line}\n`;
      if (text.length < TOGETHER) continue;
      this.#socket.write(text);
      text = "";
    }
    if (text !== "") this.#socket.write(text);
    if (this.#stopping && this.#jobs.size === 0) this.#socket.end();
  }
}

function keyOf({ id, token }: { id: number; token: number }): string {
  if (!Number.isSafeInteger(id) || !Number.isSafeInteger(token)) throw new Error("id and token must be integers");
  return `${id} ${token}`;
}

/** Returns the results of dependencies as a handler gets them. */
function results(dependencies: NonNullable<Message["dependencies"]>): Record<string, unknown> {
  const all = Object.entries(dependencies).map(([name, of]) => [
    name,
    of.result_payload === undefined ? of.result : Buffer.from(of.result_payload, "base64"),
  ]);
  return Object.fromEntries(all) as Record<string, unknown>;
}
