import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Client, Invalid, newStep, newTask, type StandardSchema, task, type TaskOptions } from "claimq";
import { handle } from "claimq/worker";
import { check } from "../dist/options.js";
import { parse } from "../dist/task.js";

/** A validator that takes numbers in digits. */
const month: StandardSchema<{ month: string }, { month: number }> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => {
      const given = (value as { month: unknown }).month;
      const number = Number(given);
      return typeof given === "string" && number >= 1 && number <= 12
        ? { value: { month: number } }
        : { issues: [{ message: "must be 1 to 12", path: ["month", { key: 0 }] }] };
    },
  },
};

test("a task as the API takes it", () => {
  const mail = task<{ to: string }>("mail");
  const made = newTask(mail, { to: "ada" }, { key: "k", priority: 5, runAt: new Date(0), backoff: { initialMs: 1, maxMs: 9 }, retentionMs: -1 });
  assert.deepEqual(JSON.parse(JSON.stringify(made)), {
    task_type: "mail",
    params: { to: "ada" },
    idempotency_key: "k",
    run_at: "1970-01-01T00:00:00.000Z",
    priority: 5,
    backoff: { initial_ms: 1, max_ms: 9 },
    retention_ms: -1,
  });
});

class Point {
  x = 1;
}

/** What each has no JSON of, or another, and where that is. */
const lost: [params: unknown, field: string, why: RegExp][] = [
  [NaN, "params", /is NaN, a number that JSON does not have/],
  [{ a: [1, { b: -Infinity }] }, "params.a[1].b", /is -Infinity/],
  [{ a: new Map([[1, 2]]) }, "params.a", /is an instance of Map, of which JSON would lose what it is/],
  [[new Set([1])], "params[0]", /instance of Set/],
  [{ a: new Point() }, "params.a", /instance of Point/],
  [{ a: new (class {})() }, "params.a", /instance of a class/],
  [{ a: new Error("lost") }, "params.a", /instance of Error/],
  [{ a: /x/ }, "params.a", /instance of RegExp/],
  [{ a: 1n }, "params.a", /is a bigint/],
  [[undefined], "params[0]", /is undefined/],
  [Array(2), "params[0]", /is undefined/],
  [{ a: () => 1 }, "params.a", /is a function/],
  [{ a: Symbol("s") }, "params.a", /is a symbol/],
  [{ a: new Date(NaN) }, "params.a", /is a Date that is none/],
  [{ a: new Uint8Array(2) }, "params.a", /is bytes/],
  [{ a: { toJSON: () => [NaN] } }, "params.a[0]", /is NaN/],
  [{ a: { toJSON: () => undefined } }, "params.a", /is undefined/],
  [{ a: ["\ud800"] }, "params.a[0]", /half of a surrogate pair/],
  [{ "\ud800": 1 }, "params.\ud800", /half of a surrogate pair/],
  [null, "params", /is null/],
];

test("params that JSON would lose something of", () => {
  for (const [params, field, why] of lost) {
    assert.throws(() => newTask("x", params), (e) => {
      assert.ok(e instanceof Invalid, String(e));
      assert.equal(e.field, field);
      assert.match(e.reason, why);
      return true;
    });
  }
  const circle: unknown[] = [];
  circle.push(circle);
  assert.throws(() => newTask("x", circle), (e) => e instanceof Invalid && e.field === "params" && /^params is no JSON: /.test(e.reason));
});

test("params that are JSON", () => {
  const shared = { x: 1 };
  for (const params of [
    0, "", false, [], {}, { a: [null, { b: -1.5 }], c: "😀 \\ud83d" }, [shared, shared], Object.create(null), { a: Object.assign(Object.create(null), { b: 1 }) },
    new Date(0), { at: new Date(0), url: new URL("http://h/") }, { toJSON: () => ({ a: 1 }) }, { left: undefined, out: 1 }, Buffer.from("x").toJSON(),
  ]) {
    assert.equal(newTask("x", params).params, params);
  }
});

test("nothing is sent that JSON would lose something of", async () => {
  let sent = 0;
  const client = new Client({ endpoints: "http://h", fetch: async () => { sent++; throw new Error("sent"); } });
  const refused = (field: string) => (e: unknown) => e instanceof Invalid && e.field === field;
  await assert.rejects(client.submit("x", { a: NaN }), refused("params.a"));
  await assert.rejects(client.submit("x", 1, { maxAttempts: -1 }), refused("max_attempts"));
  await assert.rejects(client.submitMany([newTask("x", 1), { task_type: "x", params: { a: [1n] } }]), refused("tasks[1].params.a[0]"));
  await assert.rejects(client.batch([{ op: "submit", params: new Map() }]), refused("ops[0].params"));
  await assert.rejects(client.request("POST", "/api/x", { body: { a: Infinity } }), refused("a"));
  assert.equal(sent, 0);
});

interface Vector {
  task: Record<string, unknown>;
  field: string;
}

test("options are refused as the server refuses them", () => {
  const vectors = JSON.parse(readFileSync(new URL("../../options.json", import.meta.url), "utf8")) as Vector[];
  assert.ok(vectors.length > 100);
  for (const { task, field } of vectors) {
    let got = "";
    try {
      check(task);
    } catch (e) {
      assert.ok(e instanceof Invalid, String(e));
      assert.ok(e.reason.startsWith(e.field));
      got = e.field;
    }
    assert.equal(got, field, JSON.stringify(task));
  }
});

test("options that are none", () => {
  const cases: [options: TaskOptions, field: string, why: RegExp][] = [
    [{ maxAttempts: -1 }, "max_attempts", /^max_attempts is -1: it must be an integer from 0 to 2147483647$/],
    [{ maxAttempts: NaN }, "max_attempts", /is NaN/],
    [{ leaseMs: 50 }, "lease_ms", /is 50: it must be an integer from 100 to 86400000$/],
    [{ delayMs: Infinity }, "delay_ms", /is Infinity/],
    [{ runAt: new Date("never") }, "run_at", /is a Date that is none/],
    [{ expiresAt: new Date(8.64e15) }, "expires_at", /it must be a time of the years 1970 to 9999/],
    [{ runAt: new Date(0), delayMs: 1 }, "delay_ms", /and run_at are both given/],
    [{ backoff: { initialMs: 2, maxMs: 1 } }, "backoff.max_ms", /is 1: it must not be below initial_ms, 2/],
    [{ key: "k".repeat(300) }, "idempotency_key", /is "k{99}\.\.\.: it must be a string of 1 to 256 bytes/],
    [{ labels: { "a:b": "c" } }, "labels", /have "a:b"/],
    [{ attributes: { a: [NaN] } }, "attributes.a[0]", /is NaN/],
    [{ finalize: "claim" }, "finalize", /only for a task with steps/],
  ];
  for (const [options, field, why] of cases) {
    assert.throws(() => newTask("x", 1, options), (e) => e instanceof Invalid && e.field === field && why.test(e.reason), field);
  }
  assert.throws(() => newTask("a b", 1), (e) => e instanceof Invalid && e.field === "task_type");
  assert.throws(() => newTask("x", new Uint8Array(0)), (e) => e instanceof Invalid && e.field === "payload");
  assert.throws(() => newStep("a b", newTask("x", 1)), /step "a b": its name must be 1 to 128/);
  assert.throws(() => handle(task("a b"), {}, () => {}), /task type "a b": it must be 1 to 128/);
});

test("params", () => {
  assert.deepEqual(newTask(task<void>("tidy")).params, {});
  assert.equal(newTask("zero", 0).params, 0);
  assert.equal(newTask("bytes", new Uint8Array([0, 255, 1])).payload, "AP8B");
  const parent = newTask("parent", undefined, { steps: [newStep("one", newTask("a", 1)), newStep("two", newTask("b", 2), ["one"])] });
  assert.ok(!("params" in parent));
  assert.deepEqual(parent.steps?.map((s) => [s.step, s.depends_on]), [["one", undefined], ["two", ["one"]]]);
  assert.throws(() => newStep("one", newTask("a", 1, { key: "k" })), /step one: a step has no idempotency_key/);
});

test("a validator", () => {
  const report = task("report", month).returns<string>();
  assert.deepEqual(newTask(report, { month: "11" }).params, { month: "11" });
  assert.deepEqual(parse(report, { month: "11" }), { month: 11 });
  assert.throws(() => newTask(report, { month: "13" }), (e) => e instanceof Invalid && e.field === "params.month[0]" && /must be 1 to 12/.test(e.message));
  const later = task("later", { "~standard": { version: 1, vendor: "test", validate: async () => ({ value: 1 }) } });
  assert.throws(() => newTask(later, 1), TypeError);
});
