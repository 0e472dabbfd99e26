// Merging new results into a list.
/** @import { Task } from "./types/model" */

/**
 * What is shown of what was found: rows stay where they are, and what does not match any more is greyed. What comes above them waits.
 * @param {Task[]} found @param {Task[]} before @param {(task: Task) => number} rank @param {boolean} whole whether found are all there are
 */
export function merge(found, before, rank, whole) {
	const now = new Map(found.map((task) => [task.id, task])), known = new Set(before.map((task) => task.id)), top = Math.max(...before.map(rank));
	const lowest = whole ? -Infinity : Math.min(...found.map(rank)), more = found.filter((task) => !known.has(task.id));
	return {
		rows: [...before.map((task) => now.get(task.id) ?? task), ...more.filter((task) => rank(task) < top)],
		gone: new Set(before.filter((task) => !now.has(task.id) && rank(task) >= lowest).map((task) => task.id)),
		news: more.filter((task) => rank(task) >= top).length,
	};
}
