import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, hourly, what } from "../failuregroups.js";

const group = (name, count, first, last) => ({ group: name, task_type: "mail", signature: name, example: name, count, first_at: `2026-11-2${first}T00:00:00Z`, last_at: `2026-11-2${last}T00:00:00Z`, ids: [count], by_hour: [1, count - 1] });

test("a page of older ones adds up", () => {
	const data = { failures: [group("a", 5, 3, 5), group("b", 4, 4, 5)], groups: 2, looked: 9, failed: 20, cursor: "x", types: [] };
	const more = fold(data, { failures: [group("b", 7, 1, 2), group("c", 1, 1, 1)], looked: 8, next_cursor: null });
	assert.deepEqual(more.failures.map(({ group, count, first_at: first, last_at: last, ids }) => [group, count, first.slice(8, 10), last.slice(8, 10), ids]), [["b", 11, "21", "25", [4]], ["a", 5, "23", "25", [5]], ["c", 1, "21", "21", [1]]]);
	assert.deepEqual(more.failures.map(({ by_hour: hours }) => hours), [[2, 9], [1, 4], [1, 0]]);
	assert.deepEqual([more.looked, more.groups, more.cursor, more.failed, more.pages], [17, 3, null, 20, 2]);
});

test("the bars are said in words", () => {
	assert.equal(hourly([0, 0, 0]), "None in the last 24 hours");
	assert.equal(hourly([0, 0, 3]), "3 in the last hour");
	assert.equal(hourly([1200, 0, 3]), "1,203 in the last 24 hours, 3 in the last one");
});

test("the question names what was grouped", () => {
	assert.equal(what({ task_type: "mail", signature: "timeout after <n> ms" }), "of type mail that failed with “timeout after <n> ms”");
	assert.equal(what({ task_type: "mail", signature: "" }), "of type mail that failed without an error");
	assert.ok(what({ task_type: "mail", signature: "😀".repeat(200) }).endsWith("😀…”"));
});
