// Groups of failed tasks: added up over pages, and named in a question.
import { num } from "./text.js";

/** @import { Group } from "./types/model" */

const signatureShown = 120;

/** "of type mail that failed with ...", for the question before an act. @param {Pick<Group, "task_type"|"signature">} group */
export function what({ task_type: type, signature }) {
	const text = Array.from(signature), cut = text.length > signatureShown ? text.slice(0, signatureShown).join("") + "…" : signature;
	return `of type ${type} that failed ${signature ? `with “${cut}”` : "without an error"}`;
}

/** What the bars of a group say, in words. @param {number[]} hours */
export function hourly(hours) {
	const all = hours.reduce((sum, n) => sum + n, 0), last = hours.at(-1) ?? 0;
	return !all ? "None in the last 24 hours" : all === last ? `${num(all)} in the last hour` : `${num(all)} in the last 24 hours, ${num(last)} in the last one`;
}

/**
 * What is shown, with one more page of older ones: groups that are in both are added up, the largest come first.
 * @param {any} data @param {{failures: Group[], looked: number, next_cursor: string|null}} body
 */
export function fold(data, { failures, looked, next_cursor: cursor }) {
	/** @type {Map<string, Group>} */
	const all = new Map(data.failures.map((/** @type {Group} */ group) => [group.group, group]));
	for (const older of failures) {
		const known = all.get(older.group);
		all.set(older.group, known ? { ...known, count: known.count + older.count, first_at: older.first_at, by_hour: known.by_hour.map((n, i) => n + older.by_hour[i]) } : older);
	}
	const list = [...all.values()].sort((a, b) => b.count - a.count || Date.parse(b.last_at) - Date.parse(a.last_at));
	return { ...data, failures: list, groups: Math.max(list.length, data.groups), looked: data.looked + looked, cursor, pages: (data.pages ?? 1) + 1 };
}
