// The first thing one sees: is all well, what waits, what failed.
import { Age, Card, Code, Counts, Empty, html, Link, Rates, Stat, Tone } from "../parts/bits.js";
import { has } from "../actions.js";
import { path } from "../routes.js";
import { noteMembers, state } from "../store.js";
import { bytes, dur, num, plural } from "../text.js";
import { columns } from "./types.js";
import { pagesOf } from "../schedulepages.js";
import { History } from "../parts/history.js";
import { Table } from "../parts/table.js";

/** @import { Members, OverviewData, Room, Types, View, Wanting } from "../types/model" */

/** The number of types shown, of those that wait and of those that need attention. */
const topMax = 10;
/** The number of schedules of a full page. A shorter page may have been cut for its size, so the next one is read. */
const fullPage = 1000;
const shownStatuses = ["pending", "claimed", "scheduled", "blocked", "running", "failed"];

/** @param {Members|null} cluster */
const leading = (cluster) => cluster?.nodes.find(({ node_id }) => node_id === cluster.leader);

/** The severity of the leader's memory use. @param {Room|null|undefined} room */
const strain = (room) => (!room || room.state_bytes < room.state_limit_bytes * 0.9 ? "" : room.state_bytes < room.state_limit_bytes ? "warn" : "bad");

const hour = 3600000;
/** How long a type's oldest task may be pending while nothing of the type is claimed. */
const patience = 60000;

/** Whether the tasks of a type wait though nothing of it is being done. @param {Types["types"][number]} type */
const rests = (type) => type.counts.pending > 0 && !type.counts.claimed && !type.completed_per_s && type.oldest_wait_ms > patience;

/** Why the oldest task of a type waits, as GET /api/tasks/{id}/why has it. @param {any} why */
function reason(why) {
	const text = why?.reasons[0]?.code === "queued" ? "" : why?.reasons[0]?.message;
	return text ? ": " + text[0].toLowerCase() + text.slice(1) : "";
}

/** What wants to be looked at, worst first. @param {OverviewData} data */
function attention({ wanting, cluster, schedules, lately, whys }) {
	/** @type {Wanting[]} */
	const out = [];
	for (const node of cluster?.nodes ?? []) {
		if (node.problem) out.push({ tone: node.healthy ? "warn" : "bad", what: node.node_id, to: "/cluster", why: node.problem });
	}
	const room = leading(cluster)?.room, tone = strain(room);
	if (room && tone) out.push({ tone, what: "Memory", to: "/cluster", why: `${tone === "bad" ? "is full: submits are refused" : "is nearly full"}; tasks take ${bytes(room.state_bytes)} of ${bytes(room.state_limit_bytes)}` });
	if (lately?.looked) {
		const [most] = lately.failures, often = most.signature && most.count > 1 ? `, ${num(most.count)} with “${most.signature}”` : "";
		out.push({ tone: "bad", what: "Failures", to: "/failures", why: `${lately.next_cursor ? "More than " : ""}${plural(lately.looked, "task")} failed for good in the last hour${often}` });
	}
	for (const type of wanting.types) {
		const { task_type: name, counts } = type, to = path("types", name), waiting = counts.pending;
		if (type.paused) out.push({ tone: "warn", what: name, to, why: `is paused; ${plural(waiting, "task")} waiting` });
		else if (type.max_claimed !== null && counts.claimed >= type.max_claimed && waiting) out.push({ tone: "warn", what: name, to, why: `is at its limit of ${num(type.max_claimed)} claims; ${plural(waiting, "task")} waiting` });
		else if (rests(type)) out.push({ tone: "bad", what: name, to, why: `${plural(waiting, "task")} waiting, the oldest for ${dur(type.oldest_wait_ms, 1)}, none claimed${reason(whys[name])}`, size: type.oldest_wait_ms });
		if (type.failed_per_s) out.push({ tone: "bad", what: name, to: "/tasks", query: { status: "failed", type: name }, why: `${plural(Math.round(type.failed_per_s * 60), "task")} failed for good in the last minute` });
	}
	for (const schedule of schedules ?? []) {
		const late = schedule.next_run_at ? Date.now() - Date.parse(schedule.next_run_at) : 0;
		if (late > 60000) out.push({ tone: "warn", what: schedule.name, to: path("schedules", schedule.name), why: `is late by ${dur(late, 1)}` });
	}
	return out.sort((a, b) => (a.tone === b.tone ? (b.size ?? Infinity) - (a.size ?? Infinity) || 0 : a.tone === "bad" ? -1 : 1));
}

/** @param {{data: OverviewData}} props */
function Attention({ data }) {
	const found = attention(data), shown = found.slice(0, topMax), more = found.length - shown.length + data.wanting.matched - data.wanting.types.length;
	return html`<${Card} title="Needs attention">
		${found.length ? html`<ul class="list">${shown.map(({ tone, what, to, query, why }) => html`<li key=${what + why}><${Tone} tone=${tone} /><span class="grow">${to ? html`<${Link} to=${to} query=${query}>${what}<//>` : html`<b>${what}</b>`} ${why}</span></li>`)}</ul>
			${more > 0 && html`<p><${Link} to="/types">And ${num(more)} more<//></p>`}`
			: html`<p><span class="tone" data-tone="good" aria-hidden="true">✓</span> Nothing. Every type that waits has somebody at work.</p>`}
	<//>`;
}

/** @param {{cluster: Members|null}} props */
function Cluster({ cluster }) {
	const { unready, session } = state;
	if (!cluster) return html`<${Stat} label="This node" value=${session?.node_id ?? ""} sub=${unready || "knows a leader and has caught up"} tone=${unready ? "bad" : ""} />`;
	const well = cluster.nodes.filter((node) => node.healthy).length, all = cluster.nodes.length;
	const room = leading(cluster)?.room, rooms = cluster.nodes.flatMap((node) => node.room ?? []), free = Math.min(...rooms.map((one) => one.disk_free_bytes || Infinity));
	return html`<${Stat} to="/cluster" label="Leader" value=${cluster.leader || "none"} tone=${cluster.leader ? "" : "bad"} sub=${`term ${num(cluster.term)}`} />
		<${Stat} to="/cluster" label="Nodes well" value=${`${well} of ${all}`} tone=${well < all ? "bad" : ""} sub=${[...new Set(cluster.nodes.map((node) => node.version))].join(", ")} />
		${room && html`<${Stat} to="/cluster" label="Memory" value=${bytes(room.state_bytes)} sub=${`of ${bytes(room.state_limit_bytes)}`} tone=${strain(room)} />`}
		${free < Infinity && html`<${Stat} to="/cluster" label="Disk free" value=${bytes(free)} sub="where it is least" tone=${rooms.some((one) => one.disk_free_bytes < one.disk_free_min_bytes) ? "bad" : ""} />`}`;
}

/** @param {{data: OverviewData}} props */
function Body({ data }) {
	const { types: { types, total, all }, cluster } = data;
	if (!total) {
		return html`${attention(data).length > 0 && html`<${Attention} data=${data} />`}<div class="stats"><${Cluster} ...${data} /></div><${Card}><${Empty} title="No tasks yet">
			<p>Submit the first:</p>
			<${Code}>${`curl -d '{"task_type":"mail","params":{"to":"ann@example.org"}}' ${location.origin}${new URL("../api/tasks", location.href).pathname}`}<//>
			<${Code}>${`claimq submit --task-type mail --params '{"to":"ann@example.org"}'`}<//>
		<//><//>`;
	}
	const top = types.filter((type) => type.counts.pending);
	return html`
		<${Attention} data=${data} />
		<div class="stats">
			<${Counts} counts=${all.counts} of=${shownStatuses} />
			<${Stat} label="Oldest pending" value=${html`<${Age} ms=${all.oldest_pending_age_ms || null} units=${1} />`} />
		</div>
		<div class="stats">
			<${Cluster} cluster=${cluster} />
			<${Rates} of=${all} />
		</div>
		<${History} seen=${data.seen} />
		${top.length > 0 && html`<${Card} title="Waiting longest" tools=${html`<${Link} to="/types">All ${plural(total, "type")}<//>`}>
			<${Table} caption="Types whose oldest task waits longest" rows=${top} id="task_type" to="/types" cols=${columns} />
		<//>`}`;
}

/** Why the oldest tasks of those types wait that rest, by type; a task may be gone by then. @param {any} ask @param {Types} wanting */
async function whysOf(ask, { types }) {
	const pairs = types.filter(rests).map(async (type) => [type.task_type, await ask(`/tasks/${type.oldest_pending_id}/why`).catch(() => null)]);
	return Object.fromEntries(await Promise.all(pairs));
}

/** @type {View} */
export default {
	title: () => "Overview",
	every: 2000,
	seldom: 10000,
	async load({ ask, data, fresh }) {
		const [types, rare] = await Promise.all([
			ask("/types", { order: "oldest", limit: topMax }),
			fresh ? data : Promise.all([
				has("operator") ? ask("/cluster").catch((error) => (error.code === "forbidden" ? null : Promise.reject(error))) : null, // the leader may be read-only, or have other keys
				pagesOf(ask, (page) => page.length === fullPage).then(({ schedules }) => schedules),
				state.me?.task_types ? null : ask("/history"),
				ask("/types", { attention: true, order: "oldest", limit: topMax }).then(async (wanting) => ({ wanting, whys: await whysOf(ask, wanting) })),
				state.me?.task_types ? null : ask("/failures", { ended_after: new Date(Date.now() - hour).toISOString(), limit: 1 }),
			]).then(([cluster, schedules, seen, waits, lately]) => ({ cluster, schedules, seen, ...waits, lately })),
		]);
		if (rare.cluster) noteMembers(rare.cluster);
		return { ...rare, types };
	},
	Body,
};
