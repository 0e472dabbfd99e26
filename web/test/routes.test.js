import assert from "node:assert/strict";
import { test } from "node:test";
import { href, match, parse, path } from "../routes.js";

test("an address is read as it was written", () => {
	const query = { status: "failed", label: "a:b c\nd:&=", key: "\u202ex#?" };
	assert.deepEqual(parse(href("/tasks", query)), { path: "/tasks", query });
	assert.equal(href("/tasks", { status: "", type: undefined }), "#/tasks");
	assert.deepEqual(parse(""), { path: "/", query: {} });
});

test("names with slashes and percent signs are one part", () => {
	const name = "a/b%2F c";
	assert.deepEqual(match("/schedules/:name", path("schedules", name)), { name });
	assert.equal(match("/schedules/:name", "/schedules"), null);
	assert.equal(match("/types/:name", "/types/%E0%A4%A"), null);
});
