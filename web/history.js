// The history of the last hour, as charts with equivalent sentences.
import { dur, num, plural, rate } from "./text.js";

/** @import { ChartProps, History } from "./types/model" */

/** @typedef {(number|null)[]} Values null: there was none in the interval */

/** An interval that has been under way for less has no rate yet. */
const leastMs = 10000;
const decades = (/** @type {number} */ from) => Array.from({ length: 36 }, (_, i) => from * [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

/** The format of each measure, the marks of its axis, and its minimum range. */
const measures = {
	rate: { format: rate, marks: decades(0.1), least: 1 },
	count: { format: num, marks: decades(1), least: 4 },
	time: { format: dur, marks: [...decades(1).slice(0, 9), ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 432000, 864000, 8640000].map((s) => s * 1000)], least: 1000 },
};

/** @param {Values} values */
const sum = (values) => values.reduce((/** @type {number} */ total, value) => total + (value ?? 0), 0);
/** @param {Values} values */
const most = (values) => Math.max(0, ...values.map((value) => value ?? 0));

/** The last minute against the mean of all before. @param {string} what @param {Values} values */
export function rateSentence(what, values) {
	const known = values.filter((value) => value !== null), mean = (/** @type {Values} */ some) => sum(some) / (some.length || 1);
	const now = mean(known.slice(-1)), before = mean(known.slice(0, -1)), change = before ? Math.round((now / before - 1) * 100) : 0;
	return `${what} ${rate(now)}${change ? `, ${num(Math.abs(change))} % ${change < 0 ? "less" : "more"} than before` : ""}.`;
}

/** How long a half, and 99 of 100, had waited or run: a chart of it. @param {string} title @param {number[]} at @param {Values} half @param {Values} all @returns {ChartProps} */
function latency(title, at, half, all) {
	const last = half.findLastIndex((value) => value !== null);
	return {
		title, at, ...measures.time, least: 10, sentence: last < 0 ? "There were none." : `Half within ${dur(half[last] ?? 0, 1)}, 99 % within ${dur(all[last] ?? 0, 1)}.`,
		lines: [{ name: "Half within", values: half, tone: 2 }, { name: "99 % within", values: all, tone: 4 }],
	};
}

/** Null while there is too little to draw. @param {History} seen @returns {ChartProps[]|null} */
export function charts({ from, to, interval_ms: interval, submitted, completed, failed, pending, claimed, oldest_pending_age_ms: oldest, ...times }) {
	if (pending.length < 2) return null;
	const begin = Date.parse(from ?? ""), end = Date.parse(to ?? ""), at = pending.map((_, i) => Math.min(begin + (i + 1) * interval, end) / 1000);
	const open = end - begin - (pending.length - 1) * interval;
	const rates = (/** @type {number[]} */ values) => values.map((value, i) => (i < values.length - 1 ? (value * 1000) / interval : open < leastMs ? null : (value * 1000) / open));
	const done = rates(completed), longest = most(oldest);
	return [
		{ title: "Rates", at, ...measures.rate, sentence: rateSentence("Completed", done), lines: [{ name: "Submitted", values: rates(submitted), tone: 1 }, { name: "Completed", values: done, tone: 2 }, { name: "Failed", values: rates(failed), tone: 3 }] },
		{ title: "Waiting and held", at, ...measures.count, sentence: `${plural(pending.at(-1) ?? 0, "task")} pending, at most ${num(most(pending))}.`, lines: [{ name: "Pending", values: pending, tone: 1 }, { name: "Claimed", values: claimed, tone: 4 }] },
		{ title: "Oldest pending", at, ...measures.time, sentence: longest ? `${oldest.at(-1) ? dur(oldest.at(-1) ?? 0) : "Nothing"} now, at most ${dur(longest)}.` : "Nothing has waited.", lines: [{ name: "Age", values: oldest, tone: 4 }] },
		latency("How long tasks waited", at, times.waited_p50_ms, times.waited_p99_ms),
		latency("How long tasks ran", at, times.ran_p50_ms, times.ran_p99_ms),
	];
}
