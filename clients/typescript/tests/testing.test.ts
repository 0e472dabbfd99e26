import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Client, Invalid, newStep, newTask, type StandardSchema, task } from "claimq";
import { Recorder, run, runWorker, TestServer } from "claimq/testing";
import { Cancelled, handle, Permanent, RetryAfter, Snooze } from "claimq/worker";

const mail = task<{ to: string; subject?: string }, { sentTo: string }>("mail");
const report = task<{ month: number }, number>("report");
const odd = task<{ what: string }, unknown>("odd");

const sendMail = handle(mail, { timeoutMs: 60_000 }, async ({ to }, { progress }) => {
  progress({ connected: true });
  progress({ sent: 1 });
  return { sentTo: to };
});
const makeReport = handle(report, {}, ({ month }, { followUp }) => {
  followUp(mail, { to: "boss@example.org" }, { key: `report-${month}` });
  return month;
});
const beOdd = handle(odd, {}, ({ what }, { attempt, dependencies, signal }) => {
  switch (what) {
    case "fail": if (attempt === 1) throw new Error("bad luck"); break;
    case "permanent": throw new Permanent("never");
    case "retry": if (attempt === 1) throw new RetryAfter(5_000, "busy"); break;
    case "snooze": throw new Snooze(60_000);
    case "function": return () => 1;
    case "large": return "x".repeat(1 << 20);
    case "look": signal.throwIfAborted();
  }
  return dependencies;
});

const echo = task<Uint8Array, Uint8Array>("echo");
const echoBytes = handle(echo, {}, (bytes) => bytes);

describe("run", () => {
  test("done", async () => {
    assert.deepEqual(await run(sendMail, { to: "ada" }), {
      kind: "done", result: { sentTo: "ada" }, followUps: [], steps: [], progress: [{ connected: true }, { sent: 1 }],
    });
    assert.deepEqual(await run(makeReport, { month: 11 }), {
      kind: "done", result: 11, followUps: [newTask(mail, { to: "boss@example.org" }, { key: "report-11" })], steps: [], progress: [],
    });
  });

  test("failed and snoozed", async () => {
    const permanent = await run(beOdd, { what: "permanent" });
    assert.ok(permanent.kind === "failed" && permanent.permanent && permanent.thrown instanceof Permanent);
    assert.equal(permanent.error, "never");
    const retry = await run(beOdd, { what: "retry" });
    assert.ok(retry.kind === "failed" && retry.retryInMs === 5_000);
    assert.deepEqual(await run(beOdd, { what: "snooze" }), { kind: "snoozed", afterMs: 60_000, progress: [] });
    assert.equal((await run(beOdd, { what: "fail" }, { attempt: 2 })).kind, "done");
  });

  test("a result that claimq would not take", async () => {
    const none = await run(beOdd, { what: "function" });
    assert.ok(none.kind === "failed" && none.permanent && /^result is a function/.test(none.error));
    const large = await run(beOdd, { what: "large" });
    assert.ok(large.kind === "failed" && /has 1048578 bytes: at most 1048576/.test(large.error));
  });

  test("what is submitted comes through JSON and the validator", async () => {
    const schema: StandardSchema<{ day: string }, { day: Date }> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: (value) => {
          const { day } = value as { day: unknown };
          return typeof day === "string" ? { value: { day: new Date(day) } } : { issues: [{ message: "no day" }] };
        },
      },
    };
    const yearOf = handle(task("dated", schema).returns<number>(), {}, ({ day }) => day.getUTCFullYear());
    const outcome = await run(yearOf, { day: "2026-01-01" });
    assert.ok(outcome.kind === "done" && outcome.result === 2026);
    await assert.rejects(run(yearOf, {} as { day: string }), Invalid);
    const when = handle(task<{ day: Date }>("when"), {}, ({ day }) => typeof day);
    assert.equal((await run(when, { day: new Date(0) }) as { result: string }).result, "string");
  });

  test("a copy of a context has its signal", async () => {
    const look = handle(mail, {}, async (_, context) => {
      assert.ok({ ...context }.signal === context.signal && Object.create(context).signal === context.signal);
      return { sentTo: "ada" };
    });
    assert.equal((await run(look, { to: "ada" })).kind, "done");
  });

  test("a signal", async () => {
    const stop = new AbortController();
    stop.abort(new Cancelled("timeout"));
    const outcome = await run(beOdd, { what: "look" }, { signal: stop.signal });
    assert.ok(outcome.kind === "failed" && outcome.error === "told to stop: timeout");
  });

  test("bytes", async () => {
    const outcome = await run(echoBytes, new Uint8Array([255]));
    assert.ok(outcome.kind === "done");
    assert.deepEqual(outcome.result, Buffer.from([255]));
  });
});

describe("a recorder", () => {
  test("keeps what is submitted", async () => {
    const recorder = new Recorder();
    const client: Client = recorder;
    assert.deepEqual(await client.submit(mail, { to: "ada" }, { key: "k" }), { id: 1, created: true, differs: false, replaced: false });
    await client.submitMany([newTask(report, { month: 1 }), newTask("other")]);
    recorder.assertSubmitted(mail, { to: "ada" });
    recorder.assertSubmitted(mail, { to: "ada" }, { key: "k" });
    recorder.assertSubmitted("other");
    recorder.assertNotSubmitted(odd);
    assert.deepEqual(recorder.submitted.map((t) => t.task_type), ["mail", "report", "other"]);
    assert.deepEqual(recorder.submitted[2], { task_type: "other", params: {} }); // as sent
    assert.throws(() => recorder.assertSubmitted(mail, { to: "bob" }), /was submitted 0 times, not once; there are .*"ada"/);
    assert.throws(() => recorder.assertSubmitted(mail, { to: "ada" }, { key: "l" }), assert.AssertionError);
    assert.throws(() => recorder.assertNotSubmitted(mail), assert.AssertionError);
    await client.submit(mail, { to: "ada" });
    assert.throws(() => recorder.assertSubmitted(mail, { to: "ada" }), /2 times/);
  });

  test("does nothing else", async () => {
    await assert.rejects(new Recorder().get(1), (e) => e instanceof Invalid && /keeps submits, and does nothing else/.test(e.message));
  });
});

describe("a test server", { timeout: 60_000 }, () => {
  let server: TestServer;
  before(async () => { server = await TestServer.start({ at: new Date("2026-03-01T00:00:00Z") }); });
  beforeEach(() => server.reset());
  after(() => server.close());

  const all = [sendMail, makeReport, beOdd, echoBytes];
  const kinds = async () => (await runWorker(all, server.client)).map((ran) => ran.kind);

  test("time stands still until it is moved", async () => {
    const { id } = await server.client.submit(mail, { to: "ada" }, { delayMs: 3_600_000 });
    assert.equal(id, 1);
    assert.deepEqual(await kinds(), []);
    assert.deepEqual(await server.time.advance(3_600_000), new Date("2026-03-01T01:00:00Z"));
    assert.deepEqual(await kinds(), ["done"]);
    const done = await server.client.get(id);
    assert.deepEqual([done.result, done.progress], [{ sentTo: "ada" }, { sent: 1 }]);
  });

  test("a step adds steps", async () => {
    const plan = handle(task("plan"), {}, (_, { addSteps }) => {
      addSteps(newStep("part", newTask(mail, { to: "part" })), newStep("sum", newTask(mail, { to: "sum" }), ["part", "plan"]));
    });
    const { id } = await server.client.submit("scan", undefined, { steps: [newStep("plan", newTask("plan", 1))] });
    const ran = await runWorker([...all, plan], server.client);
    assert.deepEqual(ran.map(({ kind }) => kind), ["done", "done", "done"]);
    const done = await server.client.get(id);
    assert.deepEqual(done.result, { plan: null, part: { sentTo: "part" }, sum: { sentTo: "sum" } });
    const outcome = await run(plan, 1);
    assert.ok(outcome.kind === "failed" && outcome.error.includes("is no step"));
  });

  test("each outcome", async () => {
    await server.client.submit(report, { month: 11 });
    assert.deepEqual(await kinds(), ["done", "done"]); // its follow-up, too
    const followUp = await server.client.getByKey("report-11");
    assert.deepEqual(followUp.params, { to: "boss@example.org" });
    const ids: Record<string, number> = {};
    for (const what of ["permanent", "retry", "snooze", "function"]) ids[what] = (await server.client.submit(odd, { what })).id;
    assert.deepEqual(await kinds(), ["failed", "failed", "snoozed", "failed"]);
    const get = (what: string) => server.client.get(ids[what]!);
    assert.deepEqual([(await get("permanent")).status, (await get("permanent")).error], ["failed", "never"]);
    assert.equal((await get("function")).status, "failed");
    const snoozed = await get("snooze");
    assert.deepEqual([snoozed.status, snoozed.attempts], ["scheduled", 0]);
    await server.time.advance(4_999);
    assert.deepEqual(await kinds(), []);
    await server.time.advance(1);
    assert.deepEqual(await kinds(), ["done"]);
    assert.equal((await get("retry")).attempts, 2);
  });

  test("a handler that snoozes for no time does not hold the test up", async () => {
    const { id } = await server.client.submit(mail, { to: "ada" });
    const again = handle(mail, {}, () => { throw new Snooze(); });
    await assert.rejects(runWorker([again], server.client), { message: `task ${id} (mail) was snoozed for 0 ms 100 times, and would be without end` });
  });

  test("bytes and steps", async () => {
    const steps = [
      newStep("a", newTask(echo, new Uint8Array([255]))),
      newStep("b", newTask(odd, { what: "last" }), ["a"]),
    ];
    const { id } = await server.client.submit("parent", undefined, { steps });
    assert.deepEqual(await kinds(), ["done", "done"]);
    const parent = await server.client.wait(id);
    assert.equal(parent.status, "completed");
    assert.deepEqual(parent.result, { a: "/w==", b: { a: { type: "Buffer", data: [255] } } });
  });

  test("a program that is not there", async () => {
    const was = process.env["CLAIMQ_BIN"];
    process.env["CLAIMQ_BIN"] = "/nowhere/claimq";
    try {
      await assert.rejects(TestServer.start(), /the program \/nowhere\/claimq cannot be run: install claimq in PATH, or name it in CLAIMQ_BIN/);
    } finally {
      process.env["CLAIMQ_BIN"] = was;
    }
  });
});
