import assert from "node:assert/strict";
import { test } from "node:test";
import { indent, rawField } from "../raw.js";

const params = '{"n":12345678901234567890, "e":{}, "s":"a\\\\","list":[1,2.50,[]]}';
const answer = `{"success": true,"other":[1,{"task":2}],"task":{"id":17,"odd":"}\\"{","params": ${params} ,"num":12.50,"s":"q","l":null,"last":1e400}}`;

test("a field's bytes are those of the answer", () => {
	assert.equal(rawField(answer, "task", "params"), params);
	assert.equal(rawField(answer, "task", "num"), "12.50");
	assert.equal(rawField(answer, "task", "s"), '"q"');
	assert.equal(rawField(answer, "task", "l"), "null");
	assert.equal(rawField(answer, "task", "last"), "1e400");
	assert.equal(rawField(answer, "task", "none"), undefined);
	assert.equal(rawField('{"a":5}', "a"), "5");
});

test("a string of a megabyte is no trouble", () => {
	const long = JSON.stringify('\\"}'.repeat(350_000));
	assert.equal(rawField(`{"task":{"params":${long},"x":1}}`, "task", "params"), long);
});

test("indenting changes nothing but white space outside of strings", () => {
	assert.equal(indent('{"a":[1,{}],"b":"x:,{"}'), '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": "x:,{"\n}');
	assert.equal(indent(params).replace(/\s/g, ""), params.replace(/\s/g, ""));
});
