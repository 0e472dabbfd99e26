import assert from "node:assert/strict";
import { test } from "node:test";
import { arranged, layers } from "../layers.js";

/** Steps written as "name: on, on". */
const steps = (...lines) => lines.map((line) => {
	const [step, on] = line.split(":");
	return { step, depends_on: on.split(",").map((name) => name.trim()).filter(Boolean) };
});
const names = (all) => all.map((layer) => layer.map(({ step }) => step));

test("a step stands after the last of those that it depends on", () => {
	assert.deepEqual(names(layers(steps("a:", "b: a", "c: a, b", "d:", "e: d, c"))), [["a", "d"], ["b"], ["c"], ["e"]]);
});

test("names that no step has are passed over", () => {
	assert.deepEqual(names(layers(steps("a: gone", "b: a, gone"))), [["a"], ["b"]]);
});

test("names that objects have are names", () => {
	assert.deepEqual(names(layers(steps("constructor:", "__proto__: constructor", "c: toString"))), [["constructor", "c"], ["__proto__"]]);
});

test("a thousand steps in a chain, and a thousand abreast", () => {
	const chain = Array.from({ length: 1000 }, (_, i) => ({ step: `s${i}`, depends_on: i ? [`s${i - 1}`] : [] }));
	assert.equal(layers(chain).length, 1000);
	assert.equal(layers(chain.map(({ step }) => ({ step, depends_on: [] })))[0].length, 1000);
});

test("within a layer, steps follow what they hang on", () => {
	const drawn = arranged(steps("a:", "b:", "c:", "z: c", "y: b", "x: a"));
	assert.deepEqual(drawn.map((column) => column.map(({ name }) => name)), [["a", "b", "c"], ["x", "y", "z"]]);
	assert.deepEqual(drawn[1].map(({ from }) => from), [["a"], ["b"], ["c"]]);
});

test("edges that pass a layer share a place in it", () => {
	const drawn = arranged(steps("a:", "b: a", "c: a, b", "d: a, c"));
	assert.deepEqual(drawn.map((column) => column.map(({ step, from }) => [step?.step ?? "passes", from])), [
		[["a", []]], [["b", ["a"]], ["passes", ["a"]]], [["c", ["a\n1", "b"]], ["passes", ["a\n1"]]], [["d", ["a\n2", "c"]]],
	]);
});
