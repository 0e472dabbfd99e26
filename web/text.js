// What the page says, and how it writes numbers and times.
import { state } from "./store.js";

/** @import { Backoff, Task } from "./types/model" */

const whole = new Intl.NumberFormat("en"), parts = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** @param {number} n */
export const num = (n) => whole.format(n);
/** @param {number} n */
export const short = (n) => (n >= 100 ? whole.format(Math.round(n)) : parts.format(n));
/** @param {number} n */
export const rate = (n) => (n > 0 && n < 0.05 ? "<0.1" : short(n)) + "/s";
/** @param {number} n @param {string} noun @param {string} [many] */
export const plural = (n, noun, many = noun + "s") => `${num(n)} ${n === 1 ? noun : many}`;

/** What is shown of a long text. @param {string|undefined} text */
export const firstLine = (text = "") => text.split("\n")[0].slice(0, 200);

/** Labels as one types them. @param {Words} [labels] */
export const labelLines = (labels = {}) => Object.entries(labels).map(([name, value]) => `${name}:${value}`);

/** Puts tasks in the order in which they were claimed. @param {Task} a @param {Task} b */
export const byClaim = (a, b) => Date.parse(a.claimed_at ?? "") - Date.parse(b.claimed_at ?? "");

/** A word at the beginning of a line. @param {string} word */
export const title = (word) => word[0].toUpperCase() + word.slice(1);

/** @param {number} n */
export function bytes(n) {
	const unit = n < 1024 ? 0 : n < 1 << 20 ? 1 : n < 1 << 30 ? 2 : 3;
	return unit ? parts.format(n / 1024 ** unit) + ["", " KiB", " MiB", " GiB"][unit] : plural(n, "byte");
}

/** Units of durations, in ms. @type {[string, number][]} */
const lengths = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

/** "3 h 12 min": the largest units. @param {number} ms */
export function dur(ms, units = 2) {
	if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
	let rest = ms;
	if (ms < 10000) return `${parts.format(ms / 1000)} s`;
	const out = [];
	for (const [unit, size] of lengths) {
		const n = Math.floor(rest / size);
		rest -= n * size;
		if (n || out.length) out.push(n && `${n} ${unit}`);
		if (out.length === units) break;
	}
	return out.filter(Boolean).join(" ");
}

/** @param {Backoff} backoff */
export const backoffWords = ({ initial_ms: initial, factor, max_ms: max, jitter }) => `${dur(initial)} × ${factor} up to ${dur(max)}${jitter ? `, jitter ${jitter}` : ""}`;

/** What was typed as a duration ("30s", "5 min", "1500" of ms) in ms, NaN for other text. @param {string} text */
export function parseDur(text) {
	const [, n, unit] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?\s*$/.exec(text) ?? [];
	return Math.round(Number(n) * (lengths.find(([name]) => name === unit || name === unit + "in")?.[1] ?? 1));
}

/** A duration as one types it, without loss. @param {number|null|undefined} ms */
export function typedDur(ms) {
	if (ms === null || ms === undefined) return "";
	for (const [unit, size] of lengths) if (ms > 0 && ms % size === 0) return `${ms / size} ${unit}`;
	return `${ms} ms`;
}

/** @param {string} at @param {number} [now] */
export function ago(at, now = Date.now()) {
	const ms = now - Date.parse(at);
	if (Math.abs(ms) < 1500) return "now";
	const size = dur(Math.floor(Math.abs(ms) / 1000) * 1000, Math.abs(ms) > 3600000 ? 2 : 1);
	return ms < 0 ? "in " + size : size + " ago";
}

/** @type {Record<string, Intl.DateTimeFormat>} each takes long to make */
const made = {};

/** Writes a time in this browser's zone, or in UTC. @param {number} at @param {Intl.DateTimeFormatOptions} options */
function written(at, options) {
	const timeZone = state.settings.times === "utc" ? "UTC" : undefined;
	return (made[timeZone + Object.keys(options).join()] ??= new Intl.DateTimeFormat("en-GB", { ...options, timeZone })).format(at);
}

/** @type {Intl.DateTimeFormatOptions} */
const minutes = { hour: "2-digit", minute: "2-digit" }, toSecond = /** @type {const} */ ({ ...minutes, second: "2-digit" });

/** The time of day. @param {number} at seconds since 1970 */
export const clock = (at, seconds = true) => written(at * 1000, seconds ? toSecond : minutes);

/** The absolute time. @param {string} at */
export const when = (at) => written(Date.parse(at), { year: "numeric", month: "2-digit", day: "2-digit", ...toSecond, hourCycle: "h23", timeZoneName: "short" }).replace(/(\d+)\/(\d+)\/(\d+), /, "$3-$2-$1 ");

/** Mark and word of each status: never colour alone. @type {Words} */
const marks = { completed: "✓", claimed: "▶", running: "▶", pending: "○", scheduled: "◷", blocked: "·", failed: "✗", cancelled: "⊘" };
/** @param {string} status */
export const statusMark = (status) => marks[status] ?? "?";
/** @type {Task["status"][]} */
export const statuses = ["pending", "claimed", "scheduled", "blocked", "running", "failed", "completed", "cancelled"];
/** @type {string[]} */
export const ended = ["failed", "completed", "cancelled"];

/** What a key needs to be allowed to do something. @type {Words} */
const ranks = { producer: "make and change tasks", worker: "work on tasks", operator: "operate the cluster" };
/** @param {string} role */
export const needs = (role) => `Your key may not ${ranks[role] ?? "do this"}: it needs the role ${role}.`;

/** Advice about a refused call, in addition to the server's. @param {any} refusal */
export function hint(refusal) {
	switch (refusal.code) {
		case "unreachable": return "The node, or the network to it, is down.";
		case "outcome_unknown": return "It may have been done. Check before you repeat it.";
		case "overloaded": return refusal.body.reason ? `The cluster refuses this: ${String(refusal.body.reason).replaceAll("_", " ")} is full.` : refusal.advice;
		case "forbidden": return refusal.body.role ? needs(refusal.body.role) : refusal.advice;
		default: return refusal.advice;
	}
}
