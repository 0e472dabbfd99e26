// One worker: what it holds, and what it did last.
import { Age, Card, Empty, html, Link, Stat, Time, Tone } from "../parts/bits.js";
import { EventList } from "../parts/events.js";
import { Table } from "../parts/table.js";
import { newest } from "../places.js";
import { path } from "../routes.js";
import { byClaim, num } from "../text.js";

/** @import { Column, Task, View, Worker, WorkerData } from "../types/model" */

const eventsShown = 50, claimsShown = 200;

/** @type {Column<Task>[]} */
const columns = [
	{ key: "id", title: "Task", main: true },
	{ key: "type", title: "Type", wide: true, cell: (task) => html`<${Link} to=${path("types", task.task_type)}>${task.task_type}<//>` },
	{ key: "claimed_at", title: "Claimed", sort: true, time: true },
	{ key: "lease_remaining_ms", title: "Lease left", num: true, sort: true, cell: (task) => html`<${Age} ms=${task.lease_remaining_ms} />` },
	{ key: "attempt", title: "Attempt", num: true, cell: (task) => `${num(task.attempts)} of ${task.max_attempts || "∞"}` },
	{ key: "cancel", title: "Cancel", cell: (task) => (task.cancel_requested ? html`<${Tone} tone="warn">asked<//>` : "") },
];

/** @param {{data: WorkerData, params: Words}} props */
function Body({ data: { worker, claims, events, more }, params }) {
	return html`
		<div class="stats">
			<${Stat} label="Claims" value=${num(worker?.claimed ?? 0)} to="/tasks" query=${{ status: "claimed", worker: params.name }} />
			<${Stat} label="Last call" value=${html`<${Time} at=${worker?.last_seen_at} />`} sub=${worker ? "" : "not within ten minutes"} />
			<${Stat} label="Oldest claim" value=${html`<${Time} at=${claims[0]?.claimed_at} />`} />
		</div>
		<${Card} title="Its claims">${claims.length
			? html`<${Table} caption="Claims" rows=${claims} id="id" to="/tasks" cols=${columns} sort="claimed_at" />${more && html`<p class="small soft">The first ${num(claimsShown)}.</p>`}`
			: html`<p class="soft">Nothing now.</p>`}<//>
		<${Card} title="Its latest events" tools=${html`<${Link} to="/trail" query=${{ worker: params.name }}>In the trail<//>`}>${events.length ? html`<${EventList} events=${events} />` : html`<${Empty} title="The trail has no events of it" />`}<//>`;
}

/** @type {View} */
export default {
	title: ({ params }) => params.name,
	every: 5000,
	seldom: 10000,
	async load({ get, params: { name }, data, fresh }) {
		const [all, held] = await Promise.all([get("/workers"), get("/tasks", { status: "claimed", worker_id: name, limit: claimsShown })]);
		const events = fresh ? data.events : (await newest(get, { worker_id: name }, eventsShown)).events.reverse();
		return {
			worker: all.body.workers.find((/** @type {Worker} */ worker) => worker.worker_id === name), claims: held.body.tasks.sort(byClaim),
			more: held.body.next_cursor !== null, events,
		};
	},
	Body,
};
