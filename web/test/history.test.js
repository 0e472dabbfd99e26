import assert from "node:assert/strict";
import { test } from "node:test";
import { charts, rateSentence, sample } from "../history.js";

const type = (rate, pending, oldest) => ({ submitted_per_s: rate, completed_per_s: rate / 2, failed_per_s: 0, counts: { pending, claimed: 1 }, oldest_pending_age_ms: oldest });

test("a rate says how it has changed", () => {
  assert.equal(rateSentence("Completed", [10, 10, 20]), "Completed 20/s, 100 % more than before.");
  assert.equal(rateSentence("Completed", [10, null, 5]), "Completed 5/s, 50 % less than before.");
  assert.equal(rateSentence("Completed", [10, 10]), "Completed 10/s.");
  assert.equal(rateSentence("Completed", [0, 3]), "Completed 3/s.");
  assert.equal(rateSentence("Completed", []), "Completed 0/s.");
});

test("what types show adds up, not more often than can be seen", () => {
  assert.equal(sample("a", [type(2, 5, 100), type(4, 6, 900)], 1000000).length, 1);
  assert.equal(sample("a", [type(9, 9, 9)], 1002000).length, 1);
  const points = sample("a", [type(9, 9, 9)], 1005000);
  assert.deepEqual(points.map(({ at, submitted, pending, oldest }) => [at, submitted, pending, oldest]), [[1000, 6, 11, 900], [1005, 9, 9, 9]]);
  assert.equal(charts(points)[1].sentence, "9 tasks pending, at most 11.");
  assert.equal(charts(points.slice(1)), null);
});

test("while nobody looked there is a gap", () => {
  sample("b", [type(1, 1, 1)], 1000000);
  assert.deepEqual(sample("b", [type(1, 1, 1)], 1060000).map(({ pending }) => pending), [1, null, 1]);
});

test("it keeps what it can", () => {
  let points;
  for (let i = 0; i < 1000; i++) points = sample("c", [type(1, 1, 1)], i * 5000);
  assert.equal(points.length, 720);
  for (let i = 0; i < 20; i++) sample("d" + i, [type(1, 1, 1)], 0);
  assert.equal(sample("c", [type(1, 1, 1)], 9e9).length, 1);
});
