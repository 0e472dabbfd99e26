import assert from "node:assert/strict";
import { test } from "node:test";
import { newest, placeOf } from "../places.js";

/** A trail whose places jump by far, as where a backup was restored. */
const jump = 1_795_902_074_663_000;
const trail = [1, 2, 3, jump, jump + 1, jump + 2].map((index) => ({ index, sub: 0, event: index < jump ? "submitted" : "claimed" }));
let asked = 0;
async function get(path, { after, event, limit }) {
	asked++;
	const behind = trail.filter(({ index }) => index > Number(after ?? 0)), events = behind.filter((one) => !event || one.event === event).slice(0, limit);
	const next = events.length === limit ? events.at(-1) : (behind.at(-1) ?? { index: after });
	return { index: 12, body: { events, next: next.sub === undefined ? String(next.index) : `${next.index}.0`, place: String(jump + 5) } };
}

test("the newest events are found behind and before a restore, and how far the trail was is told", async () => {
	const { events, at } = await newest(get, {}, 5);
	assert.deepEqual(events.map(({ index }) => index), [2, 3, jump, jump + 1, jump + 2]);
	assert.equal(at, String(jump + 5));
	assert.deepEqual((await newest(get, { event: "submitted" }, 5)).events.map(({ index }) => index), [1, 2, 3]);
});

test("what is there is not looked for again and again", async () => {
	asked = 0;
	assert.equal((await newest(get, {}, 3)).events.length, 3);
	assert.ok(asked <= 3, `${asked} requests`);
});

test("an index of the log leads to its place", async () => {
	assert.equal(await placeOf(get, 10), String(jump + 3));
	assert.equal(await placeOf(async () => { throw new Error("no"); }, 10), "");
});
