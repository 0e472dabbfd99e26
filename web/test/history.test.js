import assert from "node:assert/strict";
import { test } from "node:test";
import { charts, rateSentence } from "../history.js";

const seen = {
	task_type: null, interval_ms: 60000, since: "2026-11-21T12:00:00.000Z", from: "2026-11-21T12:00:00.000Z", to: "2026-11-21T12:02:20.000Z", kept: true,
	submitted: [720, 0, 180], completed: [708, 0, 176], failed: [12, 0, 2], pending: [40, 0, 42], claimed: [12, 0, 12], oldest_pending_age_ms: [1200, 0, 1300],
	waited_p50_ms: [40, null, null], waited_p99_ms: [960, null, null], ran_p50_ms: [null, null, 207], ran_p99_ms: [null, null, 703],
};

test("a rate says how its last minute differs from what was before", () => {
	assert.equal(rateSentence("Completed", [10, 10, 20, null]), "Completed 20/s, 100 % more than before.");
	assert.equal(rateSentence("Completed", [5, 15, 5]), "Completed 5/s, 50 % less than before.");
	assert.equal(rateSentence("Completed", [20]), "Completed 20/s.");
	assert.equal(rateSentence("Completed", [0, 3]), "Completed 3/s.");
	assert.equal(rateSentence("Completed", []), "Completed 0/s.");
});

test("each interval stands at its end, counts of it as rates, those of the last one over the time that it has been under way", () => {
	const [rates, held, oldest] = charts(seen);
	assert.deepEqual(rates.at, [60, 120, 140].map((s) => Date.parse(seen.from) / 1000 + s));
	assert.deepEqual(rates.lines.map(({ values }) => values), [[12, 0, 9], [11.8, 0, 8.8], [0.2, 0, 0.1]]);
	assert.deepEqual(held.lines.map(({ values }) => values), [[40, 0, 42], [12, 0, 12]]);
	assert.equal(held.sentence, "42 tasks pending, at most 42.");
	assert.equal(oldest.sentence, "1.3 s now, at most 1.3 s.");
	assert.deepEqual(charts({ ...seen, to: "2026-11-21T12:02:09.000Z" })[0].lines[0].values, [12, 0, null]);
});

test("latencies are those of the last interval in which there were any", () => {
	const [waited, ran] = charts(seen).slice(3);
	assert.equal(waited.sentence, "Half within 40 ms, 99 % within 960 ms.");
	assert.deepEqual(ran.lines.map(({ values }) => values), [[null, null, 207], [null, null, 703]]);
	assert.equal(charts({ ...seen, ran_p50_ms: [null, null, null] })[4].sentence, "There were none.");
});

test("an axis has marks that read well, and more than its 0", () => {
	for (const { marks, format, least, title } of charts(seen)) {
		const words = marks.map(format);
		assert.equal(new Set(words).size, words.length, title);
		assert.ok(marks.every((mark, i) => !i || mark > marks[i - 1]), title);
		assert.ok(marks.some((mark) => mark > 0 && mark <= least), title);
	}
});

test("with less than two points there is nothing to draw", () => {
	assert.equal(charts({ ...seen, pending: [1] }), null);
	assert.equal(charts({ ...seen, from: null, pending: [] }), null);
});
