import assert from "node:assert/strict";
import { test } from "node:test";
import { Invalid, newStep, newTask, type StandardSchema, task } from "claimq";
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
  const made = newTask(mail, { to: "ada" }, { key: "k", delayMs: 5, runAt: new Date(0), backoff: { initialMs: 1, maxMs: 9 }, retentionMs: -1 });
  assert.deepEqual(JSON.parse(JSON.stringify(made)), {
    task_type: "mail",
    params: { to: "ada" },
    idempotency_key: "k",
    delay_ms: 5,
    run_at: "1970-01-01T00:00:00.000Z",
    backoff: { initial_ms: 1, max_ms: 9 },
    retention_ms: -1,
  });
  assert.throws(() => newTask("mail", 1, { runAt: new Date("never") }), RangeError);
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
