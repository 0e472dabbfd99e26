// Who is at work: each worker, and what it holds.
import { Card, Code, Empty, html, Link } from "../parts/bits.js";
import { Table } from "../parts/table.js";
import { path } from "../routes.js";
import { num } from "../text.js";

/** @import { Column, Task, View, Worker } from "../types/model" */

/** The number of claims scanned for the oldest and the types of each worker. */
const claimsLooked = 1000;

/** @typedef {Worker & {oldest: string|null, types: string[]}} Row */

/** @type {Column<Row>[]} */
const columns = [
	{ key: "worker_id", title: "Worker", main: true, sort: true },
	{ key: "claimed", title: "Claims", num: true, sort: true },
	{ key: "oldest", title: "Oldest claim", sort: (worker) => worker.oldest ?? "~", time: true },
	{ key: "types", title: "Types", wide: true, cell: (worker) => (worker.types.length ? worker.types.map((type) => html`<${Link} key=${type} class="tag" to=${path("types", type)}>${type}<//> `) : "") },
	{ key: "last_seen_at", title: "Last call", sort: true, time: true },
];

/** Each worker with its oldest claim and the types of its claims. @param {Worker[]} workers @param {Task[]} claims @returns {Row[]} */
function joined(workers, claims) {
	/** @type {Map<string, {oldest: string, types: Set<string>}>} */
	const held = new Map();
	for (const { worker_id: worker, claimed_at: at, task_type: type } of claims) {
		if (!worker || !at) continue;
		const of = held.get(worker) ?? { oldest: at, types: new Set() };
		if (at < of.oldest) of.oldest = at;
		held.set(worker, { oldest: of.oldest, types: of.types.add(type) });
	}
	return workers.map((worker) => ({ ...worker, oldest: held.get(worker.worker_id)?.oldest ?? null, types: [...(held.get(worker.worker_id)?.types ?? [])].sort() }));
}

/** @param {{data: {workers: Row[], more: boolean}}} props */
function Body({ data: { workers, more } }) {
	if (!workers.length) {
		return html`<${Card}><${Empty} title="No claims"><p>No worker has called within ten minutes. Start one with a line:</p><${Code}>${"claimq work TYPE -- ./do-it"}<//><//><//>`;
	}
	return html`<${Card}>
		<${Table} caption="Workers" rows=${workers} id="worker_id" to="/workers" cols=${columns} sort="-claimed" />
		${more && html`<p class="small soft">Types and oldest claims are of the first ${num(claimsLooked)} claims.</p>`}
	<//>`;
}

/** @type {View} */
export default {
	title: () => "Workers",
	every: 5000,
	async load({ get }) {
		const [{ body }, claims] = await Promise.all([get("/workers"), get("/tasks", { status: "claimed", limit: claimsLooked })]);
		return { workers: joined(body.workers, claims.body.tasks), more: claims.body.next_cursor !== null && claims.body.tasks.length === claimsLooked };
	},
	Body,
};
