import assert from "node:assert/strict";
import { test } from "node:test";
import { pagesOf } from "../schedulepages.js";

const pages = { "": [["a", "b"], "b"], b: [["c", "d"], "d"], d: [["e"], null] };
/** A node with these pages. */
const ask = async (path, { after }) => {
	assert.equal(path, "/schedules");
	const [names, next] = pages[after];
	return { schedules: names.map((name) => ({ name })), next };
};
const names = ({ schedules, more }) => [schedules.map(({ name }) => name).join(""), more];

test("so many pages as are asked for", async () => {
	assert.deepEqual(names(await pagesOf(ask, (_, n) => n < 1)), ["ab", true]);
	assert.deepEqual(names(await pagesOf(ask, (_, n) => n < 2)), ["abcd", true]);
	assert.deepEqual(names(await pagesOf(ask, (_, n) => n < 9)), ["abcde", false]);
});

test("pages up to one that is not full", async () => {
	assert.deepEqual(names(await pagesOf(ask, (page) => page.length === 2)), ["abcde", false]);
	assert.deepEqual(names(await pagesOf(ask, (page) => page.length === 3)), ["ab", true]);
});
