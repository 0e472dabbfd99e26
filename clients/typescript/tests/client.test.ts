// The client's calls, against claimq testserver and small servers in this file.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { Client, type ClientOptions, Closed, Conflict, type Event, Invalid, newStep, newTask, NotAuthorized, NotAvailable, NotFound, SubmitManyError, task, TooLarge } from "claimq";

const server = spawn(process.env.CLAIMQ_BIN!, ["testserver"], { stdio: ["pipe", "pipe", "inherit"] });
const url: string = (await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next()).value;
const client = new Client({ endpoints: url });
/** What is open until all tests have ended, also those that failed. */
const open: { close: () => unknown }[] = [client, { close: () => server.stdin.end() }];
after(() => open.forEach((o) => o.close()));

const mail = task<{ to: string }, { sent: boolean }>("mail");

/** Does as a worker would, and returns the task's id. */
async function work(type: string, result: unknown): Promise<number> {
  const claimed = await client.request("POST", "/api/tasks/claim", { body: { worker_id: "w", task_types: [type] } });
  const { id, claim_token } = claimed.task as { id: number; claim_token: number };
  await client.request("POST", `/api/tasks/${id}/complete`, { body: { worker_id: "w", claim_token, result } });
  return id;
}

/** Has a server listen, and returns where it does. */
async function start(scheme: "http" | "https", own: Server): Promise<string> {
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  open.push({ close: () => own.close().closeAllConnections() });
  return `${scheme}://127.0.0.1:${(own.address() as AddressInfo).port}`;
}

/** Starts a server for one test, and returns a client of it. */
async function startOwn(listener: RequestListener, options?: ClientOptions): Promise<Client> {
  const own = new Client({ endpoints: await start("http", createServer(listener)), ...options });
  open.push(own);
  return own;
}

test("submit, wait, get", async () => {
  const done = await client.submit(mail, { to: "ada" }, { key: "first", labels: { a: "b" }, attributes: { c: { d: 1 } }, traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
  assert.deepEqual({ ...done }, { id: done.id, created: true, differs: false, replaced: false });
  assert.deepEqual({ ...(await client.submit(mail, { to: "ada" }, { key: "first" })) }, { id: done.id, created: false, differs: false, replaced: false });
  assert.equal((await client.submit(mail, { to: "eve" }, { key: "first" })).differs, true);
  const waiting = client.wait(done);
  await work("mail", { sent: true });
  const ended = await waiting;
  assert.equal(ended.result?.sent, true);
  const { params, attributes } = await client.get(done);
  assert.deepEqual([params, attributes], [{ to: "ada" }, { c: { d: 1 } }]);
  assert.equal((await client.getByKey("first", { type: "mail" })).id, done.id);
  await assert.rejects(client.getByKey("a/b c?"), NotFound);
  await client.delete(done);
  await assert.rejects(client.get(done.id), NotFound);
});

test("unique replace gives the task that waits the new params", async () => {
  const first = await client.submit(mail, { to: "ada" }, { key: "replaced", unique: "replace", delayMs: 86_400_000 });
  assert.equal(first.replaced, false);
  assert.deepEqual({ ...(await client.submit(mail, { to: "eve" }, { key: "replaced", unique: "replace" })) }, { id: first.id, created: false, differs: false, replaced: true });
  const { params, status } = await client.get(first);
  assert.deepEqual([params, status], [{ to: "eve" }, "pending"]);
  const other = await client.submit("letter", 1, { key: "replaced", unique: "replace" });
  assert.deepEqual({ ...other }, { id: first.id, created: false, differs: true, replaced: false });
  await client.cancel(first);
});

test("a task waits for its signal", async () => {
  const waits = await client.submit("approve", 1, { waitForSignalMs: 60_000 });
  const { status, wait_for_signal_ms: length } = await client.get(waits);
  assert.deepEqual([status, length], ["blocked", 60_000]);
  assert.equal((await client.signal(waits, { ok: true })).differs, false);
  const { task, differs } = await client.signal(waits, { ok: false });
  assert.deepEqual([task.signal, task.status, differs], [{ ok: true }, "pending", true]);
  await client.cancel(waits);
  await assert.rejects(client.signal(await client.submit("approve")), Conflict);
});

test("a submit without a key has one", async () => {
  const { id } = await client.submit("keyless");
  const [many] = await client.submitMany([newTask("keyless")]);
  const { results } = await client.batch([{ op: "submit", task_type: "keyless", params: 1 }]);
  const ids = [id, many!.id, (results[0] as { task: { id: number } }).task.id];
  const keys = await Promise.all(ids.map(async (id) => (await client.get(id)).idempotency_key ?? ""));
  for (const key of keys) assert.match(key, /^[0-9a-f]{32}$/);
  assert.equal(new Set(keys).size, 3);
});

test("a wait that is over", async () => {
  const { id } = await client.submit("waits");
  await assert.rejects(client.wait(id, { timeoutMs: 60 }), (e) => e instanceof DOMException && e.name === "TimeoutError" && /task \d+ has not ended yet: it is pending/.test(e.message));
  const controller = new AbortController();
  const waiting = client.wait(id, { signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, /^Error: enough$/);
  await assert.rejects(client.wait(id, { signal: controller.signal }), /^Error: enough$/);
  await client.cancel(id);
  assert.equal((await client.wait(id)).status, "cancelled");
});

test("acts on tasks", async () => {
  const { id } = await client.submit("acts", 1, { delayMs: 1000 });
  assert.equal((await client.patch(id, { priority: 7 })).status, "scheduled");
  assert.equal((await client.why(id)).reasons[0]?.code, "scheduled");
  await client.cancel(id);
  assert.equal((await client.retry(id, { addAttempts: 2 })).status, "pending");
  await assert.rejects(client.delete(id), (e) => e instanceof Conflict && e.code === "task_not_terminal" && e.details.status === "pending");
  assert.equal((await client.act({ action: "cancel", filter: { task_type: "acts" } })).matched, 1);
  const batch = await client.batch([{ op: "submit", task_type: "acts", params: 2 }, { op: "cancel", id: 10_000 }]);
  assert.deepEqual(batch.results.map((r) => r.success), [true, false]);
  await assert.rejects(client.batch([{ op: "cancel", id: 10_000 }], { atomic: true }), (e) => e instanceof NotFound && e.details.failed_op === 0);
});

test("many tasks and their lists", async () => {
  const tasks = Array.from({ length: 2_300 }, (_, i) => newTask("many", { i }, { key: `many-${i}`, labels: { half: i % 2 ? "odd" : "even" } }));
  const results = await client.submitMany(tasks);
  assert.equal(new Set(results.map((r) => r.id)).size, 2_300);
  assert.ok(results.every((r) => r.created));
  const ids: number[] = [];
  for await (const { id, params } of client.tasks({ task_type: "many", label: { half: "odd" }, include: ["params"] })) {
    assert.equal((params as { i: number }).i % 2, 1);
    ids.push(id);
  }
  assert.equal(new Set(ids).size, 1_150);
  const wrong = client.submitMany([newTask("many", 1), { task_type: "", params: 2 }, newTask("many", "x".repeat(1 << 20))]);
  await assert.rejects(wrong, (e) => {
    assert.ok(e instanceof SubmitManyError);
    const [first, second, third] = e.results;
    assert.ok(first !== undefined && "id" in first);
    assert.ok(second instanceof Invalid && second.field === "tasks[1].task_type", String(second));
    assert.ok(third instanceof TooLarge && third.status === 413, String(third));
    return true;
  });
});

test("steps, bytes and a schedule", async () => {
  const parent = newTask("parent", undefined, { steps: [newStep("a", newTask("step", 1)), newStep("b", newTask("step", 2), ["a"])] });
  const [submitted] = await client.submitMany([parent]);
  assert.deepEqual((await client.get(submitted!)).steps?.map((s) => s.step), ["a", "b"]);
  const { id } = await client.submit("bytes", new Uint8Array([1, 2, 255]));
  assert.equal((await client.get(id)).payload, "AQL/");
  const set = await client.setSchedule("nightly", { cron: "0 3 * * *", timezone: "UTC", task: { task_type: "report", params: {} } });
  assert.equal(set.next_run_at, "2026-01-01T03:00:00.000Z");
  assert.deepEqual((await client.schedules()).map((s) => s.name), ["nightly"]);
  const steps = [newStep("a", newTask("step", 1)), newStep("b", newTask("step", 2), ["a"])];
  const whole = await client.setSchedule("nightly", { every_ms: 60_000, task: { task_type: "report", steps } });
  assert.deepEqual(whole.task.steps?.map((s) => [s.step, s.depends_on]), [["a", undefined], ["b", ["a"]]]);
  await client.deleteSchedule("nightly");
  await assert.rejects(client.deleteSchedule("nightly"), NotFound);
  assert.equal((await client.setType("report", { paused: true })).paused, true);
  assert.ok((await client.types()).types.some((t) => t.task_type === "report" && t.paused));
  assert.equal((await client.setShare("report", "a/b", { paused: true })).state, "paused");
  assert.deepEqual((await client.shares("report")).map((s) => [s.share_key, s.paused]), [["a/b", true]]);
  assert.equal((await client.deleteShare("report", "a/b")).state, "open");
  assert.ok((await client.stats()).counts.pending > 0);
  assert.equal((await client.failures()).groups, 0);
  assert.ok(Array.isArray((await client.workers()).workers));
});

test("a validator refuses before anything is sent", async () => {
  const never = new Client({ endpoints: "http://127.0.0.1:1" });
  const strict = task<string, string>("strict", { "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "no" }] }) } });
  await assert.rejects(never.submit(strict, "x"), (e) => e instanceof Invalid && e.field === "params");
  await assert.rejects(client.get(1.5), /task id 1.5: it must be an integer/);
});

test("events", async () => {
  const began: Event[] = [];
  for await (const event of client.events()) began.push(event);
  const last = began.at(-1)!;
  const seen = (async () => {
    const ids: number[] = [];
    for await (const event of client.follow({ after: `${last.index}.${last.sub}`, task_type: "tells", event: ["submitted"] })) {
      ids.push(event.task_id!);
      if (ids.length === 3) break;
    }
    return ids;
  })();
  const submitted = await Promise.all([1, 2, 3].map((i) => client.submit("tells", i)));
  assert.deepEqual(await seen, submitted.map((s) => s.id).sort((a, b) => a - b));
  const told: Event[] = [];
  for await (const event of client.events({ after: `${last.index}.${last.sub}`, task_type: "tells" })) told.push(event);
  assert.equal(told.length, 3);
  await assert.rejects(client.follow({ after: "999999999.0" }).next(), (e) => e instanceof Conflict && e.code === "place_ahead");
  await assert.rejects(client.follow({ after: "x" }).next(), Invalid);
  await assert.rejects(client.follow({}, { signal: AbortSignal.abort(new Error("enough")) }).next(), /^Error: enough$/);
});

test("a stream goes on at its place", async () => {
  const asked: string[] = [];
  const event = (n: number) => `id: ${n}.0\ndata: ${JSON.stringify({ index: n, sub: 0 })}\n\n`;
  const own = await startOwn((request, response) => {
    asked.push(request.url!);
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    if (asked.length === 1) {
      // One event, half a second one, then the connection ends; a place without an event counts.
      response.write(event(1).slice(0, 9), () => response.write(`${event(1).slice(9)}: still here\r\n\r\nid: 2.5\n\ndata: {"ind`, () => request.socket.destroy()));
    } else {
      response.write(event(3));
    }
  });
  const walk = own.follow({ after: "0.0" });
  assert.equal((await walk.next()).value.index, 1);
  assert.equal((await walk.next()).value.index, 3);
  assert.deepEqual(asked, ["/api/events?after=0.0", "/api/events?after=2.5"]);
  const next = walk.next();
  own.close();
  await assert.rejects(next, Closed);
  await assert.rejects(own.get(1), Closed);
});

test("calls beyond what is under way wait for their turn", async () => {
  // It answers none until 128 wait, and then gives further ones time to come.
  const held: (() => void)[] = [];
  let most = 0;
  let isFull = false;
  const own = await startOwn((_, response) => {
    held.push(() => response.end('{"success":true,"task":{"id":1},"created":true}'));
    most = Math.max(most, held.length);
    const answer = () => held.splice(0).forEach((end) => end());
    if (isFull) answer();
    if (held.length === 128) {
      isFull = true;
      setTimeout(answer, 100);
    }
  });
  const warnings: Error[] = [];
  process.on("warning", (w) => warnings.push(w));
  const { signal } = new AbortController();
  const ids = await Promise.all(Array.from({ length: 500 }, () => own.submit("x", 1, { signal })));
  assert.equal(ids.length, 500);
  assert.equal(most, 128);
  assert.deepEqual(warnings, []);
});

test("waits beyond what is under way do so, too, and hold up no calls", async () => {
  let waiting = 0;
  const own = await startOwn((request, response) => {
    if (request.url!.includes("wait_ms")) waiting++; // it is not answered
    else response.end('{"success":true,"task":{"id":1}}');
  });
  const stop = new AbortController();
  const waits = Array.from({ length: 512 }, () => own.wait(1, stop));
  await assert.rejects(own.wait(7, { timeoutMs: 50 }), (e) => e instanceof DOMException && e.name === "TimeoutError" && /^task 7 was not asked for/.test(e.message));
  assert.equal((await own.get(1)).id, 1);
  assert.ok(waiting <= 512);
  stop.abort(new Error("enough"));
  for (const wait of await Promise.allSettled(waits)) assert.equal(wait.status === "rejected" && wait.reason.message, "enough");
});

test("an abort ends a call, and its connection", async () => {
  let ended: () => void;
  const gone = new Promise<void>((resolve) => (ended = resolve));
  const controller = new AbortController();
  const own = await startOwn((request) => {
    request.socket.on("close", () => ended());
    controller.abort();
  });
  await assert.rejects(own.get(1, { signal: controller.signal }), { name: "AbortError" });
  await gone;
});

test("headers, and a key that is renewed", async () => {
  const dir = mkdtempSync(join(tmpdir(), "claimq-"));
  const file = join(dir, "key");
  writeFileSync(file, "first\n");
  const keys: unknown[] = [];
  const own = await startOwn((request, response) => {
    keys.push(request.headers["x-api-key"]);
    assert.match(String(request.headers["x-request-id"]), /^[0-9a-f]{32}$/);
    response.statusCode = 401;
    response.end('{"success":false,"error":"unknown key","code":"unauthorized","message":"take another","request_id":"r1"}');
  }, { apiKeyFile: file });
  await assert.rejects(own.get(1), (e) => e instanceof NotAuthorized && e.message === "unknown key (unauthorized): take another" && e.requestId === "r1");
  writeFileSync(file, "the second\n");
  const until = performance.now() + 10_000;
  while (keys.at(-1) !== "the second" && performance.now() < until) await assert.rejects(own.get(1), NotAuthorized);
  assert.deepEqual([...new Set(keys)], ["first", "the second"]);
  rmSync(dir, { recursive: true });
});

test("https, with certificates on both sides", async () => {
  const dir = mkdtempSync(join(tmpdir(), "claimq-"));
  const openssl = (args: string) => execFileSync("openssl", args.split(" "), { cwd: dir, stdio: "pipe" });
  const certify = (name: string) => {
    openssl(`req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout ${name}.key -out ${name}.crt -subj /CN=${name} -addext subjectAltName=IP:127.0.0.1`);
    return { cert: readFileSync(join(dir, `${name}.crt`)), key: readFileSync(join(dir, `${name}.key`)) };
  };
  const node = certify("node");
  const mine = certify("mine");
  const https = createHttpsServer({ ...node, ca: mine.cert, requestCert: true, rejectUnauthorized: true }, (_, response) => {
    response.end('{"success":true,"task":{"id":1}}');
  });
  const endpoints = await start("https", https);
  const caFile = join(dir, "node.crt");
  const own = new Client({ endpoints, caFile, certFile: join(dir, "mine.crt"), keyFile: join(dir, "mine.key") });
  assert.equal((await own.get(1)).id, 1);
  // Nothing of a submit reaches a node that is not trusted. A node that does not trust the client
  // says so behind the handshake, when a request may be on its way.
  await assert.rejects(new Client({ endpoints, timeoutMs: 300 }).submit("x"), NotAvailable);
  await assert.rejects(new Client({ endpoints, caFile, timeoutMs: 300 }).get(1), NotAvailable);
  if (!("Deno" in globalThis)) { // there the first call fails
    assert.throws(() => new Client({ endpoints, caFile, certFile: join(dir, "mine.key") }), Error);
  }
  own.close();
  rmSync(dir, { recursive: true });
});

test("settings that are none", () => {
  const cases: [object, RegExp][] = [
    [{ endpoints: [] }, /endpoints: there are 0/],
    [{ endpoints: "ftp://h" }, /endpoint "ftp:\/\/h": it must begin with http/],
    [{ endpoints: "http://h:x" }, /endpoint "http:\/\/h:x": it is no URL/],
    [{ endpoints: "http://u@h" }, /it must have no user/],
    [{ endpoints: "http://h?" }, /it must have no user, query or fragment/],
    [{ apiKey: "a", apiKeyFile: "b" }, /apiKey and apiKeyFile are both given/],
    [{ apiKey: "a\nb" }, /apiKey must be of ASCII/],
    [{ apiKeyFile: "/nowhere" }, /ENOENT/],
    [{ timeoutMs: 0 }, /timeoutMs is 0: it must be more than 0/],
    [{ keyFile: "k" }, /keyFile is given without certFile/],
    [{ caFile: "/nowhere" }, /ENOENT/],
    [{ fetch, caFile: "c" }, /fetch is given with files/],
  ];
  for (const [options, message] of cases) assert.throws(() => new Client(options), message);
});

test("nobody is there", async () => {
  const own = new Client({ endpoints: "http://127.0.0.1:1", timeoutMs: 150 });
  await assert.rejects(own.submit("x"), (e) => e instanceof NotAvailable && /ECONNREFUSED.*given up after 0.15 s and \d+ tries$/.test(e.message));
});
