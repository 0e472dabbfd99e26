// The worker's side of the protocol of served programs, against a claimq of the test's.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const LIMITS = { line_bytes: 1 << 18, value_bytes: 1000, error_bytes: 2000, progress_bytes: 100, submit: 500 };
const HELLO = { kind: "hello", protocol: 1, worker_id: "w1", limits: LIMITS, grace_ms: 300 };

/** In Node it is known of what fails in these tests which handler had begun it. */
const isNode = process.execPath.endsWith("/node");
const path = (name: string): string => fileURLToPath(new URL(`programs/${name}.js`, import.meta.url));

type Message = Record<string, any>;

/** What claimq is to a program that it serves. */
class Peer {
  readonly child: ChildProcess;
  readonly socket: Socket;
  readonly lines: NodeJS.AsyncIterator<string>;
  hello: Message = {};
  stdout = "";
  stderr = "";
  readonly exit: Promise<unknown>;

  constructor(program = "served", ...args: string[]) {
    this.child = spawn(process.execPath, [path(program), ...args], {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      env: { ...process.env, CLAIMQ_FD: "3", NODE_OPTIONS: "" },
    });
    this.child.stdout?.on("data", (data) => (this.stdout += data));
    this.child.stderr?.on("data", (data) => (this.stderr += data));
    this.exit = once(this.child, "close").then(([code, signal]) => code ?? signal);
    this.socket = this.child.stdio[3] as unknown as Socket;
    this.socket.on("error", () => {}); // the program ended
    this.lines = createInterface({ input: this.socket, crlfDelay: Infinity })[Symbol.asyncIterator]();
  }

  /** Exchanges greetings; what the program said is in hello. */
  async greet(): Promise<void> {
    this.hello = await this.read();
    this.send(HELLO);
  }

  send(message: Message): void {
    this.socket.write(JSON.stringify(message) + "\n");
  }

  task(id: number, type: string, params: unknown = {}, more: Message = {}): void {
    this.send({ kind: "task", id, token: id + 100, type, attempt: 1, params, timeout_ms: 60000, ...more });
  }

  cancel(id: number, why: string): void {
    this.send({ kind: "cancel", id, token: id + 100, why });
  }

  async read(): Promise<Message> {
    const { value, done } = await this.lines.next();
    assert.ok(!done, `the program closed the socket: ${this.stderr}`);
    return JSON.parse(value);
  }

  /** Has a task done, and returns its answer. */
  async do(type: string, params?: unknown, more?: Message): Promise<Message> {
    this.task(1, type, params, more);
    const { id, token, ...said } = await this.read();
    assert.deepEqual([id, token], [1, 101]);
    return said;
  }

  /** Waits until the program has closed the socket and ended, and returns its exit status. */
  async end(): Promise<unknown> {
    assert.ok((await this.lines.next()).done);
    return this.exit;
  }

  async stop(): Promise<void> {
    this.send({ kind: "stop" });
    assert.equal(await this.end(), 0, this.stderr);
  }
}

/** Runs a test with a new program, which is killed if the test fails. */
async function alone(run: (peer: Peer) => Promise<void>, ...args: string[]): Promise<void> {
  const peer = new Peer("served", ...args);
  try {
    await peer.greet();
    await run(peer);
  } finally {
    peer.child.kill("SIGKILL");
    await peer.exit;
  }
}

describe("a served program", { timeout: 60_000 }, () => {
  let peer: Peer;
  before(async () => {
    peer = new Peer();
    await peer.greet();
  });
  after(() => peer.stop());

  test("hello", () => {
    const { hello } = peer;
    assert.equal(hello["protocol"], 1);
    assert.equal(hello["concurrency"], 3);
    assert.deepEqual(hello["types"].slice(0, 2), [{ type: "add", concurrency: 2, timeout_ms: 1500 }, { type: "echo" }]);
    assert.match(hello["client"], /^claimq-typescript, (Node.js|Bun|Deno) \d/);
  });

  test("done", async () => {
    assert.deepEqual(await peer.do("add", { a: 2, b: 3 }), { kind: "done", result: 5 });
    assert.deepEqual(await peer.do("echo", { text: "hé" }), { kind: "done", result: "hé" });
  });

  test("thrown on purpose", async () => {
    const said = await peer.do("throw", { what: "permanent" });
    assert.deepEqual({ ...said, error: "" }, { kind: "fail", error: "", permanent: true });
    assert.match(said["error"], /^never\n\nError: the disk is full\n/);
    assert.deepEqual(await peer.do("throw", { what: "retry" }), { kind: "fail", error: "busy", retry_in_ms: 2501 });
    assert.deepEqual(await peer.do("throw", { what: "snooze" }), { kind: "snooze", ms: 60000 });
    const far = await peer.do("throw", { what: "far" });
    assert.match(far["error"], /^RangeError: afterMs is Infinity: it must be 0 to /);
  });

  test("an error", async () => {
    const { error } = await peer.do("throw", { what: "error" });
    assert.match(error, /^TypeError: bad luck\n/); // by which failures are grouped
    assert.match(error, /served\.js:\d+/);
    assert.match(error, /\ncaused by Error: refused\n[^]*\(ECONNREFUSED\)/);
    assert.doesNotMatch(error, /secret/);
  });

  test("an error that is not taken as it is", async () => {
    const { error } = await peer.do("throw", { what: "long" });
    assert.match(error, /^aé{249}\n\.\.\.\né{747}$/);
    assert.equal((await peer.do("throw", { what: "zero" }))["error"], "a\\x00b");
  });

  for (const [what, want] of Object.entries({
    changed: /^Error: second\n/,
    loop: /^Error: round\n/,
    undefined: /^undefined was thrown/,
    null: /^null was thrown/,
    string: /^'a string' was thrown/,
    object: /^{ code: 5 } was thrown/,
    symbol: /^Symbol\(s\) was thrown/,
    getter: /was thrown|cannot be read/,
    hostile: /cannot be read/,
  })) {
    test(`thrown: ${what}`, async () => {
      const { error, ...said } = await peer.do("throw", { what });
      assert.deepEqual(said, { kind: "fail" });
      assert.match(error, want);
      assert.ok(Buffer.byteLength(error) <= LIMITS.error_bytes);
    });
  }

  for (const [what, want] of Object.entries({
    text: /^the result has 1001 bytes: at most 1000 are taken$/,
    bytes: /^the result has 1001 bytes: at most 1000 are taken$/,
    half: /^result\[0\] has half of a surrogate pair, which is no text$/,
    function: /^result is a function, which JSON does not have$/,
    bigint: /^result is a bigint, which JSON does not have$/,
    circle: /^result is no JSON: /,
    toJSON: /^result is no JSON: its toJSON threw$/,
    lost: /^result\.a\[1\]\.b is NaN, a number that JSON does not have$/,
  })) {
    test(`returned: ${what}`, async () => {
      const { error, ...said } = await peer.do("return", { what, size: what === "text" ? 999 : 1001 });
      assert.deepEqual(said, { kind: "fail", permanent: true });
      assert.match(error, want);
    });
  }

  test("returned: what throws when it is waited for", async () => {
    assert.match((await peer.do("return", { what: "thenable" }))["error"], /^Error: do not wait\n/);
  });

  test("no result, and bytes", async () => {
    assert.deepEqual(await peer.do("return", { what: "nothing" }), { kind: "done" });
    assert.deepEqual(await peer.do("return", { what: "null" }), { kind: "done" });
    assert.deepEqual(await peer.do("return", { what: "pair" }), { kind: "done", result: "😀 \\ud83d" });
    assert.deepEqual(await peer.do("return", { what: "bytes", size: 2 }), { kind: "done", result_payload: "//8=" });
    assert.deepEqual(await peer.do("bytes", undefined, { params: undefined, payload: "/w==" }), { kind: "done", result_payload: "/w==" });
  });

  test("follow-ups and progress", async () => {
    assert.deepEqual(await peer.do("follow", { a: 7 }), { kind: "progress", progress: { a: 7 } });
    const done = await peer.read();
    assert.deepEqual(done["submit"], [
      { task_type: "add", params: { a: 7 }, idempotency_key: "k" },
      { task_type: "mail", params: { to: "ada" } },
    ]);
    assert.match((await peer.do("many", { n: 501, size: 0 }))["error"], /^RangeError: a task has at most 500 follow-ups/);
    const long = await peer.do("many", { n: 500, size: 2_000 });
    assert.match(long["error"], /^the answer has \d+ bytes: at most 262143 are taken$/);
    assert.equal(long["permanent"], true);
  });

  test("progress that is none", async () => {
    assert.match((await peer.do("progress", { value: "x".repeat(99) }))["error"], /^RangeError: progress has 101 bytes: at most 100/);
    assert.match((await peer.do("progress", { value: null }))["error"], /^TypeError: progress is null/);
    assert.match((await peer.do("progress"))["error"], /^TypeError: progress is undefined, which JSON does not have/);
  });

  test("progress after the answer", async () => {
    assert.equal((await peer.do("stray", { what: "progress" }))["result"], "answered");
    assert.equal((await peer.do("echo", { text: "next" }))["result"], "next");
  });

  for (const type of ["wait", "look"]) {
    for (const why of ["cancel_requested", "timeout", "shutdown", "lease_lost"]) {
      test(`cancelled while it does ${type}: ${why}`, async () => {
        assert.equal((await peer.do(type))["progress"], "begun");
        peer.cancel(1, why);
        assert.deepEqual(await peer.read(), { kind: "fail", id: 1, token: 101, error: `told to stop: ${why}` });
        peer.cancel(1, why); // it crossed the answer
        assert.equal((await peer.do("add", { a: 1 }))["result"], 2);
      });
    }
  }

  test("cancelled, and done all the same", async () => {
    await peer.do("late");
    peer.cancel(1, "cancel_requested");
    peer.cancel(1, "timeout");
    assert.equal((await peer.read())["result"], "done all the same");
  });

  test("a context", async () => {
    const more = { labels: { x: "y" }, attributes: { a: { b: 1 } }, traceparent: "00", parent_id: 9, step: "s", dependencies: { a: { result: 1 }, b: { result_payload: "/w==" }, c: {} } };
    const { result } = await peer.do("context", { p: 1 }, more);
    assert.deepEqual(result, [{ p: 1 }, 1, 101, "context", 1, { x: "y" }, { a: { b: 1 } }, "00", 9, "s", 1, true, true, false, true, "add"]);
    const left = await peer.do("context", 3, { dependencies_left_out: true });
    assert.deepEqual([left["result"][0], left["result"][13]], [3, true]);
  });

  test("params that the validator refuses", async () => {
    const error = "params do not fit: checked: params.n: must be 1";
    assert.deepEqual(await peer.do("checked", { n: 2 }), { kind: "fail", error, permanent: true });
    assert.deepEqual(await peer.do("checked", { n: 1 }), { kind: "done", result: "one" });
  });

  test("many lines in pieces", async () => {
    let lines = "";
    for (let id = 2; id < 400; id++) {
      lines += JSON.stringify({ kind: "task", id, token: id, type: id % 2 ? "add" : "return", attempt: 1, params: { a: id, what: "text", size: 3, é: "é" } }) + "\n";
    }
    const bytes = Buffer.from(lines);
    for (let at = 0; at < bytes.length; at += 997) peer.socket.write(bytes.subarray(at, at + 997));
    const results = new Map<number, unknown>();
    while (results.size < 398) {
      const said = await peer.read();
      results.set(said["id"], said["result"]);
    }
    for (let id = 2; id < 400; id++) assert.equal(results.get(id), id % 2 ? id + 1 : "xxx");
  });

  test("a flood of progress, read late", async () => {
    peer.socket.pause();
    const flooded = once(peer.child.stdout!, "data");
    peer.task(1, "flood", { turns: 20_000 });
    await flooded; // the handler is never held up
    peer.socket.resume();
    let last: Message = {};
    let lines = 0;
    for (; last["kind"] !== "done"; lines++) {
      const said = await peer.read();
      if (said["kind"] === "done") break;
      last = said;
    }
    assert.equal(last["progress"].turn, 20_000);
    assert.ok(lines < 10_000, `${lines} lines came of 20,000 turns of the loop, while the socket took none`);
  });
});

describe("the end of a served program", { timeout: 60_000 }, () => {
  test("what it prints is its own", () =>
    alone(async (peer) => {
      assert.deepEqual(await peer.do("echo", { text: "{}" }), { kind: "done", result: "{}" });
      await peer.stop();
      assert.deepEqual([peer.stdout, peer.stderr], ["to stdout: {}\n", "to stderr: {}\n"]);
    }));

  test("stop waits for what runs, and signals are claimq's", () =>
    alone(async (peer) => {
      await peer.do("late");
      peer.send({ kind: "stop" });
      process.kill(peer.child.pid!, "SIGTERM");
      process.kill(peer.child.pid!, "SIGINT");
      peer.cancel(1, "shutdown");
      assert.equal((await peer.read())["kind"], "done");
      assert.equal(await peer.end(), 0);
    }));

  test("claimq goes, and handlers end", () =>
    alone(async (peer) => {
      await peer.do("wait");
      peer.socket.destroy();
      assert.equal(await peer.exit, 0, peer.stderr);
    }));

  test("claimq goes, and a handler stays", () =>
    alone(async (peer) => {
      await peer.do("deaf");
      peer.socket.destroy();
      assert.equal(await peer.exit, 1);
      assert.match(peer.stderr, /claimq has gone, and 1 handlers did not end in 300 ms/);
    }));

  for (const line of ["[]", "null", "{", '{"kind":"dance"}', JSON.stringify(HELLO), '{"kind":"task","type":"none","id":7,"token":1}', '{"kind":"task","type":"add","id":"7","token":1}', "x".repeat((8 << 20) + 1)]) {
    test(`garbage: ${line.slice(0, 60)}`, () =>
      alone(async (peer) => {
        peer.socket.write(line.length < 1000 ? line + "\n" : line);
        assert.equal(await peer.exit, 1);
        assert.match(peer.stderr, /ProtocolError: claimq sent /);
        const shown = line.length < 1000 ? JSON.stringify(line.slice(0, 200)) : "a line of more than 8388608 bytes";
        assert.ok(peer.stderr.includes(`claimq sent ${shown}`), peer.stderr);
      }));
  }
});

test("a claimq of another protocol", { timeout: 60_000 }, async () => {
  const peer = new Peer("transcript");
  await peer.read();
  peer.send({ ...HELLO, protocol: 2 });
  assert.equal(await peer.exit, 1);
  assert.match(peer.stderr, /ProtocolError: claimq sent .*: it speaks protocol 2, not 1/);
});

describe("what a handler has begun", { timeout: 60_000 }, () => {
  for (const [what, want] of Object.entries({ rejection: /^Error: nobody waits\n/, timer: /^Error: in a timer\n/, event: /^an event$/ })) {
    test(`fails its attempt: ${what}`, () =>
      alone(async (peer) => {
        if (isNode) {
          // Whose it was is known, whatever else runs.
          peer.task(2, "wait");
          assert.equal((await peer.read())["progress"], "begun");
        }
        const said = await peer.do("stray", { what });
        assert.equal(said["kind"], "fail");
        assert.equal(said["permanent"], what === "event" ? true : undefined);
        assert.match(said["error"], want);
        peer.cancel(2, "shutdown");
        if (isNode) assert.equal((await peer.read())["error"], "told to stop: shutdown");
        await peer.stop();
      }));
  }

  test("fails its attempt: a listener of its signal", () =>
    alone(async (peer) => {
      if (isNode) {
        peer.task(2, "wait");
        assert.equal((await peer.read())["progress"], "begun");
      }
      await peer.do("stray", { what: "listener" });
      peer.cancel(1, "cancel_requested");
      assert.match((await peer.read())["error"], isNode ? /^Error: in a listener\n/ : /^Error: in a listener\n|^told to stop/);
      peer.cancel(2, "shutdown");
      if (isNode) assert.equal((await peer.read())["error"], "told to stop: shutdown");
      await peer.stop();
    }));

  test("fails after the answer", () =>
    alone(async (peer) => {
      assert.equal((await peer.do("stray", { what: "late" }))["result"], "answered");
      await once(peer.child.stderr!, "data");
      if (isNode || peer.stderr.startsWith("task 1")) {
        assert.match(peer.stderr, /^task 1 was answered, and then what it had begun failed: Error: too late\n/);
        await peer.stop();
      } else {
        assert.match(peer.stderr, /too late/);
        assert.equal(await peer.exit, 1);
      }
    }));

  test("of nobody ends the program", () =>
    alone(async (peer) => {
      assert.equal(await peer.exit, 1);
      assert.match(peer.stderr, /^error: of nobody$/im);
    }, "--nobody"));
});

/** Runs the program by hand. */
async function byHand(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [path("served"), ...args], { stdio: ["ignore", "pipe", "pipe"] });
  const run = { code: undefined as unknown, stdout: "", stderr: "" };
  child.stdout.on("data", (data) => (run.stdout += data));
  child.stderr.on("data", (data) => (run.stderr += data));
  [run.code] = await once(child, "close");
  return run;
}

describe("by hand", { timeout: 60_000 }, () => {
  test("one handler", async () => {
    const done = await byHand("--task", "follow", "--params", '{"a": 1}');
    assert.equal(done.stdout, "null\n");
    assert.match(done.stderr, /^progress: {"a":1}$/m);
    assert.match(done.stderr, /^submits: {"task_type":"mail","params":{"to":"ada"}}$/m);
    assert.equal(done.code, 0);
    assert.equal((await byHand("--task", "throw", "--params", '{"what":"error"}')).code, 1);
    assert.equal((await byHand("--task", "throw", "--params", '{"what":"permanent"}')).code, 100);
    assert.equal((await byHand("--task", "throw", "--params", '{"what":"snooze"}')).stderr, "snoozed for 60000 ms\n");
    for (const [params, error] of [
      ['{"what":"circle","size":0}', /^result is no JSON: /],
      ['{"what":"function","size":0}', /^result is a function, /],
      ['{"what":"text","size":1048576}', /^the result has 1048578 bytes: at most 1048576 are taken/],
    ] as const) {
      const refused = await byHand("--task", "return", "--params", params);
      assert.match(refused.stderr, error);
      assert.deepEqual([refused.code, refused.stdout], [100, ""]);
    }
  });

  test("nothing to do", async () => {
    assert.match((await byHand()).stderr, /claimq is not there: start this program by `claimq work --serve/);
    process.env["CLAIMQ_SOCKET"] = "/nowhere/w.sock";
    assert.match((await byHand()).stderr, /ENOENT/);
    delete process.env["CLAIMQ_SOCKET"];
    assert.match((await byHand("--task", "no")).stderr, /--task is no: there are handlers of add, echo, /);
    assert.match((await byHand("--task", "add", "--params", "{")).stderr, /--params is no JSON/);
  });

  test("a socket that claimq listens at", async () => {
    const dir = mkdtempSync(join(tmpdir(), "claimq"));
    const server = createServer();
    server.listen(join(dir, "w.sock"));
    await once(server, "listening");
    const child = spawn(process.execPath, [path("served")], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, CLAIMQ_SOCKET: `unix:${join(dir, "w.sock")}` },
    });
    try {
      const [socket] = (await once(server, "connection")) as [Socket];
      const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
      assert.equal(JSON.parse((await lines.next()).value).kind, "hello");
      socket.write(`${JSON.stringify(HELLO)}\n{"kind":"task","id":1,"token":1,"type":"echo","attempt":1,"params":{"text":"hi"}}\n`);
      assert.equal(JSON.parse((await lines.next()).value).result, "hi"); // without the variable
      socket.write('{"kind":"stop"}\n');
      assert.ok((await lines.next()).done);
      assert.deepEqual(await once(child, "exit"), [0, null]);
    } finally {
      child.kill("SIGKILL");
      server.close();
      rmSync(dir, { recursive: true });
    }
  });
});

test("the transcript of docs/protocol.md", { timeout: 60_000 }, async () => {
  const page = readFileSync(new URL("../../../docs/protocol.md", import.meta.url), "utf8");
  const lines = /<!-- transcript -->\n```text\n([^]*?)```/.exec(page)?.[1]?.trimEnd().split("\n") ?? [];
  assert.ok(lines.length > 10);
  const peer = new Peer("transcript");
  try {
    for (const line of lines) {
      const [, who, text = ""] = /^(program|claimq): *(.*)$/.exec(line) ?? [];
      if (who === undefined) continue;
      const message: Message = JSON.parse(text);
      if (message["kind"] === "hello") {
        if (who === "claimq") continue;
        await peer.greet();
        assert.deepEqual(peer.hello, { ...message, client: peer.hello["client"] });
      } else if (who === "claimq") peer.send(message);
      else {
        const said = await peer.read();
        if (message["error"] === "cancelled") message["error"] = "told to stop: cancel_requested";
        assert.deepEqual(said, message);
      }
    }
    assert.equal(await peer.end(), 0);
  } finally {
    peer.child.kill("SIGKILL");
  }
});
