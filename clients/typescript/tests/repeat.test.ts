// Calls are repeated by the same rules as in Go: clients/vectors.json has examples.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { batchSafe, broken, decides, judge, POLL_MAX_MS, Repeats, safe, type Verdict } from "../dist/repeat.js";

const vectors = JSON.parse(readFileSync(new URL("../../vectors.json", import.meta.url), "utf8"));

test("judge", () => {
  for (const v of vectors.judge) assert.equal(judge(v.status, v.code), v.verdict, JSON.stringify(v));
});

test("decides", () => {
  for (const v of vectors.decides) assert.equal(decides(v.status, v.code), v.decides, JSON.stringify(v));
});

test("broken", () => {
  for (const v of vectors.broken) assert.equal(broken(v.sent), v.verdict, JSON.stringify(v));
});

test("next", () => {
  for (const v of vectors.next) {
    const repeats = new Repeats(v.mutation, v.repeatable);
    assert.equal(repeats.next(v.verdict as Verdict), v.action, v.name);
    assert.deepEqual([repeats.doubted, repeats.tries], [v.doubted, 1], v.name);
  }
});

test("redirects", () => {
  const repeats = new Repeats(true, true);
  for (const v of vectors.redirects) assert.equal(v.lost ? repeats.lost() : repeats.next("redirected"), v.action);
});

test("pause", () => {
  for (const v of vectors.pause) {
    const repeats = new Repeats(true, true);
    repeats.tries = v.tries;
    const pause = repeats.pause(v.asked_ms, () => v.random);
    assert.ok(Math.abs(pause - v.pause_ms) < 1e-6, `${pause}: ${JSON.stringify(v)}`);
  }
});

test("a long poll", () => {
  // A wait for the end of a task has no lease: it is as a claim with a long one.
  for (const v of vectors.poll_wait) {
    if (v.lease_ms === 3_600_000) assert.equal(Math.min(v.left_ms, POLL_MAX_MS), v.wait_ms);
  }
});

test("safe", () => {
  for (const v of vectors.safe) {
    assert.deepEqual([safe(v.op, true), safe(v.op, false), batchSafe(v.op, true)], [v.marked, v.unmarked, v.batch], v.op);
  }
});
