import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, dur, num, parseDur, plural, rate, typedDur } from "../text.js";

test("durations say their largest units", () => {
	assert.deepEqual([0, 999, 1500, 9999, 10_000, 61_000, 3_600_000, 11_520_000, 90_061_000].map((ms) => dur(ms)), ["0 ms", "999 ms", "1.5 s", "10 s", "10 s", "1 min 1 s", "1 h", "3 h 12 min", "1 d 1 h"]);
	assert.equal(dur(11_520_000, 1), "3 h");
});

test("what is typed as a duration is what was meant", () => {
	assert.deepEqual(["30s", "5 min", "2h", "1500", "0.5 s", " 3 d "].map(parseDur), [30_000, 300_000, 7_200_000, 1500, 500, 259_200_000]);
	for (const wrong of ["", "5 mi", "x", "-1"]) assert.ok(Number.isNaN(parseDur(wrong)), wrong);
	for (const ms of [1, 1500, 30_000, 90_000, 86_400_000, null]) assert.equal(ms === null ? null : parseDur(typedDur(ms)), ms);
});

test("times, numbers and sizes", () => {
	const now = Date.parse("2026-11-25T12:00:00Z");
	assert.equal(ago("2026-11-25T11:57:00Z", now), "3 min ago");
	assert.equal(ago("2026-11-25T12:00:45Z", now), "in 45 s");
	assert.equal(ago("2026-11-25T12:00:00Z", now), "now");
	assert.equal(num(12431), "12,431");
	assert.deepEqual([0, 0.01, 0.25, 1209.4].map(rate), ["0/s", "<0.1/s", "0.3/s", "1,209/s"]);
	assert.deepEqual([1, 2].map((n) => plural(n, "task")), ["1 task", "2 tasks"]);
	assert.deepEqual([12, 2048, 5 << 20].map(bytes), ["12 bytes", "2 KiB", "5 MiB"]);
});
