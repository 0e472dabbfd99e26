// The first thing one sees: is all well, what waits, what failed.
import { html } from "../parts/html.js";
import { Age, Card, Code, Empty, Link, Num, Rates, Stat, Tone } from "../parts/bits.js";
import { has } from "../actions.js";
import { path } from "../routes.js";
import { set, state } from "../store.js";
import { dur, num, plural, title } from "../text.js";
import { columns } from "./types.js";
import { failures } from "../history.js";
import { History } from "../parts/history.js";
import { Table } from "../parts/table.js";

/** @import { History as Seen, Members, Schedule, Type, Types, View } from "../types/model" */

/** Of the types, those that wait longest and those that want to be looked at. @typedef {{types: Types, wanting: Types, cluster: Members|null, schedules: Schedule[], ready: string, seen: Seen|null}} Data */

/** How many types are shown of those that wait, and of those that want to be looked at. */
const topMax = 10;
/** @type {(keyof Type["counts"])[]} */
const shownStatuses = ["pending", "claimed", "scheduled", "blocked", "running", "failed"];

/** What wants to be looked at, worst first. @param {Data} data */
function attention({ wanting, cluster, schedules, ready, seen }) {
	/** @type {{tone: string, what: any, to?: string, query?: any, why: string, size?: number}[]} */
	const out = [];
	if (ready && !state.noLeader) out.push({ tone: "bad", what: "This node is not ready", why: ready });
	for (const node of cluster?.nodes ?? []) {
		if (node.problem) out.push({ tone: node.healthy ? "warn" : "bad", what: node.node_id, to: "/cluster", why: node.problem });
	}
	const lately = seen ? failures(seen) : 0;
	if (lately) out.push({ tone: "bad", what: "Failures", to: "/failures", why: `${plural(lately, "task")} failed for good in the last hour` });
	for (const type of wanting.types) {
		const { task_type: name, counts } = type, to = path("types", name), waiting = counts.pending;
		if (type.paused) out.push({ tone: "warn", what: name, to, why: `is paused; ${plural(waiting, "task")} waiting` });
		else if (type.max_claimed !== null && counts.claimed >= type.max_claimed && waiting) out.push({ tone: "warn", what: name, to, why: `is at its limit of ${num(type.max_claimed)} claims; ${plural(waiting, "task")} waiting` });
		else if (waiting && !counts.claimed && !type.completed_per_s && type.oldest_pending_age_ms > 60000) out.push({ tone: "bad", what: name, to, why: `${plural(waiting, "task")} waiting for up to ${dur(type.oldest_pending_age_ms, 1)}, none claimed: no worker seems to ask for it`, size: type.oldest_pending_age_ms });
		if (type.failed_per_s) out.push({ tone: "bad", what: name, to: "/tasks", query: { status: "failed", type: name }, why: `${plural(Math.round(type.failed_per_s * 60), "task")} failed for good in the last minute` });
	}
	for (const schedule of schedules ?? []) {
		const late = schedule.next_run_at ? Date.now() - Date.parse(schedule.next_run_at) : 0;
		if (late > 60000) out.push({ tone: "warn", what: schedule.name, to: path("schedules", schedule.name), why: `is late by ${dur(late, 1)}` });
	}
	return out.sort((a, b) => (a.tone === b.tone ? (b.size ?? Infinity) - (a.size ?? Infinity) || 0 : a.tone === "bad" ? -1 : 1));
}

/** @param {{data: Data}} props */
function Attention({ data }) {
	const found = attention(data), shown = found.slice(0, topMax), more = found.length - shown.length + data.wanting.matched - data.wanting.types.length;
	return html`<${Card} title="Needs attention">
		${found.length ? html`<ul class="list">${shown.map(({ tone, what, to, query, why }) => html`<li key=${what + why}><${Tone} tone=${tone} /><span class="grow">${to ? html`<${Link} to=${to} query=${query}>${what}<//>` : html`<b>${what}</b>`} ${why}</span></li>`)}</ul>
			${more > 0 && html`<p><${Link} to="/types">And ${num(more)} more<//></p>`}`
			: html`<p><span class="tone" data-tone="good" aria-hidden="true">✓</span> Nothing. Every type that waits has somebody at work.</p>`}
	<//>`;
}

/** @param {{cluster: Members|null, ready: string}} props */
function Cluster({ cluster, ready }) {
	if (!cluster) return html`<${Stat} label="This node" value=${state.session?.node_id ?? ""} sub=${ready || "knows a leader and has caught up"} tone=${ready ? "bad" : ""} />`;
	const well = cluster.nodes.filter((node) => node.healthy).length, all = cluster.nodes.length;
	return html`<${Stat} to="/cluster" label="Leader" value=${cluster.leader || "none"} tone=${cluster.leader ? "" : "bad"} sub=${`term ${num(cluster.term)}`} />
		<${Stat} to="/cluster" label="Nodes well" value=${`${well} of ${all}`} tone=${well < all ? "bad" : ""} sub=${[...new Set(cluster.nodes.map((node) => node.version))].join(", ")} />`;
}

/** @param {{data: Data}} props */
function Body({ data }) {
	const { types: { types, total, all }, cluster, ready } = data;
	if (!total) {
		return html`<div class="stats"><${Cluster} ...${data} /></div>${attention(data).length > 0 && html`<${Attention} data=${data} />`}<${Card}><${Empty} title="No tasks yet">
			<p>Submit the first:</p>
			<${Code}>${`curl -d '{"task_type":"mail","params":{"to":"ann@example.org"}}' ${location.origin}${new URL("../api/tasks", location.href).pathname}`}<//>
			<${Code}>${`claimq submit --task-type mail --params '{"to":"ann@example.org"}'`}<//>
		<//><//>`;
	}
	const top = types.filter((type) => type.counts.pending);
	return html`
		<div class="stats">
			${shownStatuses.map((status) => html`<${Stat} key=${status} label=${title(status)} to="/tasks" query=${{ status }} value=${html`<${Num} n=${all.counts[status]} />`} tone=${status === "failed" && all.counts.failed ? "bad" : ""} />`)}
			<${Stat} label="Oldest pending" value=${html`<${Age} ms=${all.oldest_pending_age_ms || null} units=${1} />`} />
		</div>
		<div class="stats">
			<${Cluster} cluster=${cluster} ready=${ready} />
			<${Rates} of=${all} />
		</div>
		<${Attention} data=${data} />
		<${History} seen=${data.seen} />
		${top.length > 0 && html`<${Card} title="Waiting longest" tools=${html`<${Link} to="/types">All ${plural(total, "type")}<//>`}>
			<${Table} caption="Types whose oldest task waits longest" rows=${top} id="task_type" to="/types" cols=${columns} />
		<//>`}`;
}

/** @type {View} */
export default {
	title: () => "Overview",
	every: 2000,
	seldom: 10000,
	async load({ ask, get, data, fresh }) {
		const [types, rare] = await Promise.all([
			ask("/types", { order: "oldest", limit: topMax }),
			fresh ? data : Promise.all([
				has("operator") ? ask("/cluster").catch((error) => (error.code === "forbidden" ? null : Promise.reject(error))) : null, // the leader may be read-only, or have other keys
				ask("/schedules").then(({ schedules }) => schedules),
				get("^/readyz").then(() => "", (error) => error.message),
				state.me?.task_types ? null : ask("/history"),
				ask("/types", { attention: true, order: "oldest", limit: topMax }),
			]).then(([cluster, schedules, ready, seen, wanting]) => ({ cluster, schedules, ready, seen, wanting })),
		]);
		if (rare.cluster) set({ members: rare.cluster.nodes });
		return { ...rare, types };
	},
	Body,
};
