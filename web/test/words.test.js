import assert from "node:assert/strict";
import { test } from "node:test";
import { read } from "../words.js";

const words = [{ word: "status", hint: "" }, { word: "label", hint: "", many: true }, { word: "worker", hint: "" }];
/** @param {string} line @param {Record<string, string>} [query] */
const of = (line, query = {}) => read(line, words, query, (key) => ({ key }));

test("words become the query", () => {
	assert.deepEqual(of("status:failed label:customer:7 worker:w1"), { status: "failed", label: "customer:7", worker: "w1" });
	assert.deepEqual(of("label:b", { label: "a" }), { label: "a\nb" });
	assert.deepEqual(of("label:a", { label: "a" }), { label: "a" });
	assert.deepEqual(of("status:pending", { status: "failed", worker: "w" }), { status: "pending", worker: "w" });
	assert.deepEqual(of("status:", { status: "failed" }), { status: "" });
});

test("quotes keep spaces, and what has no word is plain", () => {
	assert.deepEqual(of('label:"a b:c d"'), { label: "a b:c d" });
	assert.deepEqual(of("mail-7"), { key: "mail-7" });
	assert.deepEqual(of("odd:7"), { key: "odd:7" });
});
