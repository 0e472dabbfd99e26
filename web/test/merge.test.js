import assert from "node:assert/strict";
import { test } from "node:test";
import { merge } from "../merge.js";

/** @param {number[]} ids @returns {any[]} */
const tasks = (...ids) => ids.map((id) => ({ id }));
/** @param {any} task */
const byId = (task) => task.id;
/** @param {any} merged */
const told = ({ rows, gone, news }) => [rows.map(byId), [...gone], news];

test("what is new above waits, and rows stay where they are", () => {
	assert.deepEqual(told(merge(tasks(9, 8, 7), tasks(7, 6, 5), byId, false)), [[7, 6, 5], [], 2]);
});

test("what does not match any more is greyed, not removed", () => {
	assert.deepEqual(told(merge(tasks(7, 5), tasks(7, 6, 5), byId, false)), [[7, 6, 5], [6], 0]);
	assert.deepEqual(told(merge(tasks(7), tasks(7, 6, 5), byId, true)), [[7, 6, 5], [6, 5], 0]);
});

test("what came up from below is put below", () => {
	assert.deepEqual(told(merge(tasks(7, 5, 4), tasks(7, 6, 5), byId, false)), [[7, 6, 5, 4], [6], 0]);
});
