// What is sent of the form that submits a task.
import { parseDur } from "./text.js";

/** What a form cannot send: which field, and why, as the node would say it. @param {string} field @param {string} error */
export const unfit = (field, error) => Object.assign(new Error(error), { body: { field } });

/** The mistake in typed JSON, "" without one. @param {string} text */
export function jsonFault(text) {
	try {
		JSON.parse(text);
		return "";
	} catch (error) {
		return /** @type {Error} */ (error).message;
	}
}

/** Labels of lines name:value. @param {string} text @returns {Words} */
export const readLabels = (text) => Object.fromEntries(text.split("\n").filter((line) => line.trim()).map((line) => [line.slice(0, Math.max(0, line.indexOf(":"))).trim(), line.slice(line.indexOf(":") + 1).trim()]));

/** JSON of fields, and of params and steps with their original bytes. @param {any} fields @param {string|undefined} params @param {string} [steps] */
export function withParams(fields, params, steps) {
	const raw = Object.entries({ params, steps }).filter(([, text]) => text !== undefined).map(([name, text]) => `"${name}":${text}`);
	return `{${[JSON.stringify(fields).slice(1, -1), ...raw].filter(Boolean).join(",")}}`;
}

/** The body of a submit. @param {Words} values */
export function bodyOf({ task_type: type, params, idempotency_key: key, priority, delay, labels, group, expires }) {
	const delayMS = delay.trim() ? parseDur(delay) : undefined; // 0 is none, whatever the type's is
	if (jsonFault(params)) throw unfit("params", `Params are no JSON: ${jsonFault(params)}`);
	if (Number.isNaN(delayMS)) throw unfit("delay", "The delay is no duration: write it as 30 s, 5 min, 1 h");
	if (!Number.isInteger(Number(priority))) throw unfit("priority", "The priority is no whole number");
	return withParams({
		task_type: type.trim() || undefined, idempotency_key: key.trim() || undefined, priority: Number(priority) || undefined, delay_ms: delayMS,
		labels: labels.trim() ? readLabels(labels) : undefined, group: group.trim() || undefined, expires_at: expires ? new Date(expires).toISOString() : undefined,
	}, params);
}
