import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { slots } from "../slots.js";

const cases = JSON.parse(readFileSync(new URL("../../internal/cron/testdata/slots.json", import.meta.url), "utf8"));

test("slots are those that the node computes", () => {
  assert.ok(cases.length > 20);
  for (const { cron, timezone, after, next } of cases) {
    const found = slots({ cron, timezone }, Date.parse(after), next.length).map((at) => new Date(at).toISOString().replace(".000", ""));
    assert.deepEqual(found, next, `${cron} ${timezone} after ${after}`);
  }
});

test("what is no plan has no slots", () => {
  for (const cron of ["", "* * * *", "60 * * * *", "5-1 * * * *", "* * * * 8", "*/0 * * * *", "1/2/3 * * * *", "a b c d e", "0 0 0 * *"]) assert.deepEqual(slots({ cron }, 0, 3), [], cron);
  assert.deepEqual(slots({ cron: "* * * * *", timezone: "Nowhere/At_All" }, 0, 3), []);
});

test("every so often goes on from a slot", () => {
  assert.deepEqual(slots({ every_ms: 5000 }, 1000, 3), [6000, 11000, 16000]);
});
