// The program that serve.test.ts runs as claimq would.
import { EventEmitter } from "node:events";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { newTask, task } from "claimq";
import { type Context, handle, Permanent, RetryAfter, serve, Snooze } from "claimq/worker";

const add = task<{ a: number; b?: number }, number>("add");
const throws = task<{ what: string }, unknown>("throw");
const returns = task<{ what: string; size: number }, unknown>("return");
const strays = task<{ what: string }, string>("stray");

const hostile = new Proxy(new Error("hidden"), {
  get() {
    throw new Error("do not look");
  },
});

const checked = task("checked", {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => ((value as { n: unknown }).n === 1 ? { value: "one" } : { issues: [{ message: "must be 1", path: ["n"] }] }),
  },
});

const thrown: Record<string, () => unknown> = {
  permanent: () => new Permanent("never", { cause: new Error("the disk is full") }),
  long: () => new Permanent("a" + "é".repeat(1_500)),
  zero: () => new Permanent("a\0b"),
  retry: () => new RetryAfter(2500.5, "busy"),
  snooze: () => new Snooze(60_000),
  far: () => new Snooze(Infinity),
  error: () => new TypeError("bad luck", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED", key: "secret" }) }),
  changed: () => {
    const e = new Error("first");
    return e.stack && Object.assign(e, { message: "second" }); // the stack is made when it is first looked at
  },
  loop: () => {
    const e = new Error("round");
    e.cause = e;
    return e;
  },
  undefined: () => undefined,
  null: () => null,
  string: () => "a string",
  object: () => ({ code: 5 }),
  symbol: () => Symbol("s"),
  getter: () => ({
    get message() {
      throw new Error("do not look");
    },
  }),
  hostile: () => hostile,
};

const returned: Record<string, (size: number) => unknown> = {
  text: (size) => "x".repeat(size),
  nothing: () => undefined,
  null: () => null,
  bytes: (size) => new Uint8Array(size).fill(255),
  half: () => ["\ud83d"],
  pair: () => "\ud83d\ude00 \\ud83d",
  function: () => () => 1,
  bigint: () => 1n,
  lost: () => ({ a: [1, { b: NaN }] }),
  circle: () => {
    const o: { o?: unknown } = {};
    o.o = o;
    return o;
  },
  toJSON: () => ({
    toJSON() {
      throw "a string";
    },
  }),
  thenable: () => ({
    get then() {
      throw new Error("do not wait");
    },
  }),
};

const began: Record<string, (context: Context) => Promise<string>> = {
  rejection: async ({ signal }) => {
    void Promise.reject(new Error("nobody waits"));
    await wait(60_000, undefined, { signal });
    return "done";
  },
  timer: () => new Promise(() => setTimeout(() => { throw new Error("in a timer"); })),
  event: () => new Promise(() => setImmediate(() => new EventEmitter().emit("error", new Permanent("an event")))),
  progress: async ({ progress }) => {
    setTimeout(() => progress("too late"));
    return "answered";
  },
  listener: async ({ signal, progress }) => {
    signal.addEventListener("abort", () => { throw new Error("in a listener"); });
    progress("begun");
    await wait(60_000, undefined, { signal });
    return "done";
  },
  late: async () => {
    setTimeout(() => { throw new Error("too late"); }, 20);
    return "answered";
  },
};

const stopped = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

if (process.argv.includes("--nobody")) {
  setTimeout(() => { throw new Error("of nobody"); }, 100);
}

await serve(
  [
    handle(add, { concurrency: 2, timeoutMs: 1_500 }, ({ a, b = 1 }) => a + b),
    handle(task<{ text: string }, string>("echo"), {}, async ({ text }) => {
      await wait(1);
      console.log("to stdout:", text);
      console.error("to stderr:", text);
      return text + (process.env["CLAIMQ_FD"] ?? "") + (process.env["CLAIMQ_SOCKET"] ?? "");
    }),
    handle(throws, {}, ({ what }) => {
      throw thrown[what]?.();
    }),
    handle(returns, {}, ({ what, size }) => returned[what]?.(size)),
    handle(checked, {}, (parsed) => parsed),
    handle(strays, {}, ({ what }, context) => began[what]?.(context) ?? what),
    handle(task<Uint8Array>("bytes"), {}, (bytes) => bytes),
    handle(task<{ a: number }>("follow"), {}, ({ a }, { progress, followUp }) => {
      progress({ a: 0 });
      progress({ a });
      followUp(add, { a }, { key: "k" });
      followUp("mail", { to: "ada" });
    }),
    handle(task<{ value: unknown }>("progress"), {}, ({ value }, { progress }) => progress(value)),
    handle(task<{ turns: number }>("flood"), {}, async ({ turns }, { progress }) => {
      for (let turn = 1; turn <= turns; turn++) {
        progress({ turn, padding: "x".repeat(70) });
        await new Promise(setImmediate);
      }
      console.log("flooded");
    }),
    handle(task<{ n: number; size: number }>("many"), {}, ({ n, size }, { followUp }) => {
      for (let i = 0; i < n; i++) followUp("mail", "x".repeat(size));
    }),
    handle(task("wait"), {}, async (_, { signal, progress }) => {
      progress("begun");
      await wait(60_000, undefined, { signal });
    }),
    handle(task("look"), {}, async (_, { signal, progress }) => {
      progress("begun");
      await stopped(signal);
      signal.throwIfAborted();
    }),
    handle(task("late"), {}, async (_, { signal, progress }) => {
      progress("begun");
      await stopped(signal);
      return "done all the same";
    }),
    handle(task("deaf"), {}, async (_, { progress }) => {
      progress("begun");
      await wait(60_000);
    }),
    handle(task("context"), {}, (params, c: Context) => [
      params, c.id, c.token, c.type, c.attempt, c.labels, c.attributes, c.traceparent ?? null, c.parentId ?? null, c.step ?? null, c.dependencies["a"] ?? null,
      c.dependencies["b"] instanceof Uint8Array, "c" in c.dependencies && c.dependencies["c"] === undefined,
      c.dependenciesLeftOut, c.left() > 50_000 && c.left() <= 60_000, newTask(add, { a: 1 }).task_type,
    ]),
  ],
  { concurrency: 3 },
);
