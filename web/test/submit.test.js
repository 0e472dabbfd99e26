import assert from "node:assert/strict";
import { test } from "node:test";
import { bodyOf, readLabels, withParams } from "../submitbody.js";

const blank = { task_type: "", params: "{}", idempotency_key: "", priority: "", delay: "", labels: "", group: "", expires: "" };

test("params are the bytes that were typed", () => {
	const params = '{"n": 12345678901234567890, "x": 1.50}';
	assert.equal(bodyOf({ ...blank, task_type: "mail", params }), `{"task_type":"mail","params":${params}}`);
	assert.equal(bodyOf({ ...blank, params: " 1 " }), '{"params": 1 }');
});

test("what was left blank is left out, the rest is what the API takes", () => {
	const values = { ...blank, task_type: " mail ", idempotency_key: "k", priority: "-3", delay: "5 min", labels: "customer:7\n\na: b:c", group: "g" };
	assert.deepEqual(JSON.parse(bodyOf(values)), { task_type: "mail", idempotency_key: "k", priority: -3, delay_ms: 300000, labels: { customer: "7", a: "b:c" }, group: "g", params: {} });
});

test("a delay of 0 is sent, in place of the type's", () => {
	assert.equal(bodyOf({ ...blank, delay: "0" }), '{"delay_ms":0,"params":{}}');
});

test("what cannot be sent is refused with its field", () => {
	for (const [field, value] of [["params", "{"], ["params", ""], ["delay", "soon"], ["priority", "1.5"], ["priority", "high"]]) {
		assert.throws(() => bodyOf({ ...blank, [field]: value }), (error) => error.body.field === field, field);
	}
});

test("a label without a colon has no name, which the node refuses", () => {
	assert.deepEqual(readLabels("customer"), { "": "customer" });
});

test("params and steps that were read are sent with their bytes", () => {
	const steps = '[{"step":"a","params":12345678901234567890}]';
	assert.equal(withParams({ task_type: "mail" }, undefined, steps), `{"task_type":"mail","steps":${steps}}`);
	assert.equal(withParams({}, "1.50", steps), `{"params":1.50,"steps":${steps}}`);
	assert.equal(withParams({}, undefined), "{}");
});
