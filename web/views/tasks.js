// Tasks by filters, newest first.
import { Button, Card, Component, Empty, html, Labels, Link, Status, Time } from "../parts/bits.js";
import { Filter } from "../parts/filter.js";
import { Table } from "../parts/table.js";
import { Act, done, may } from "../actions.js";
import { chosen, many, selected } from "../many.js";
import { send } from "../api.js";
import { merge } from "../merge.js";
import { go, href, path, setQuery } from "../routes.js";
import { ended, firstLine, num, plural, statuses, title } from "../text.js";

/** @import { Action, Column, Task, View, Word } from "../types/model" */

const rows = 50;
/** How many pages a list looks at by itself: a page is 10,000 tasks. */
const pagesAtOnce = 20;

/** @type {Word[]} */
const words = [
	{ word: "status", hint: "one status", values: statuses },
	{ word: "type", hint: "task type" },
	{ word: "label", hint: "name:value", many: true },
	{ word: "share", hint: "share key" },
	{ word: "worker", hint: "who holds or ended it" },
	{ word: "key", hint: "idempotency key" },
	{ word: "contains", hint: "text in the params" },
	{ word: "param", hint: "/to:ada, a value in the params", many: true },
	{ word: "parent", hint: "steps of a task" },
	{ word: "after", hint: "made after, as 2026-11-21 or 2026-11-21T10:00" },
	{ word: "before", hint: "made before" },
	{ word: "error", hint: "group of failures" },
];

/** A time as typed, which is one of this browser's zone unless it says another. @param {string|undefined} text */
function time(text) {
	if (!text) return undefined;
	const at = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? text + "T00:00" : text);
	return isNaN(at.getTime()) ? text : at.toISOString();
}

/** The filters of the address as those of GET /api/tasks. @param {Words} query */
const listed = ({ status, type, label, share, worker, key, contains, param, parent, after, before, error }) => ({
	status, task_type: type, label: label?.split("\n"), share_key: share, worker_id: worker, idempotency_key: key, contains, param: param?.split("\n"), parent_id: parent, created_after: time(after), created_before: time(before), error_group: error,
});

/** The same for POST /api/tasks/actions. @param {Words} query */
function filter(query) {
	const { label, idempotency_key, contains, param, parent_id, ...rest } = listed(query);
	return {
		...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)),
		...(parent_id && { parent_id: Number(parent_id) }),
		...(label && { labels: Object.fromEntries(label.map((one) => [one.slice(0, one.indexOf(":")), one.slice(one.indexOf(":") + 1)])) }),
	};
}

/** What tasks the filters mean, in words. @param {Words} query */
const meaning = (query) => words.flatMap(({ word }) => (query[word] ? query[word].split("\n").map((value) => `${word} ${value}`) : [])).join(", ");

/** What may be done with tasks of a status. @param {string|undefined} status @returns {Action[]} */
const actionsOf = (status) =>
	status === "failed" || status === "cancelled" ? ["retry", "delete"] : status === "completed" ? ["delete"] : status ? ["cancel"] : ["retry", "cancel", "delete"];

/** @type {Column<Task>[]} */
const columns = [
	{ key: "id", title: "Id", main: true, cell: (task) => num(task.id).replaceAll(",", "\u202f") },
	{ key: "status", title: "Status", cell: (task) => html`<${Status} status=${task.status} cancel=${task.cancel_requested} />` },
	{ key: "task_type", title: "Type", wide: true },
	{ key: "priority", title: "Priority", num: true },
	{ key: "attempts", title: "Attempts", num: true, cell: (task) => html`${num(task.attempts)}<span class="soft"> of ${task.max_attempts || "∞"}</span>` },
	{ key: "age", title: "When", cell: (task) => (task.status === "scheduled" ? html`runs <${Time} at=${task.run_at} />` : html`<${Time} at=${task.completed_at ?? task.created_at} />`) },
	{ key: "worker", title: "Worker or error", wide: true, cell: (task) => (task.status === "failed" && task.error ? html`<span class="clamp">${firstLine(task.error)}</span>` : task.worker_id) },
	{ key: "labels", title: "Labels", wide: true, cell: (task) => task.labels && html`<${Labels} labels=${task.labels} />` },
];

/** What is ticked lasts while one looks at older pages. @type {Set<string|number>} */
let picked = new Set();

/** @extends {Component<any>} */
class Body extends Component {
	/** @param {Words} query */
	filter(query) {
		picked = new Set();
		setQuery(query);
	}

	/** A number is an id, all else a text in the params. @param {string} plain */
	plain(plain) {
		if (!/^[1-9]\d{0,15}$/.test(plain)) return { contains: plain };
		queueMicrotask(() => go(path("tasks", plain)));
		return {};
	}

	render() {
		const { data, query, reload } = this.props, { rows: shown, gone, news, cursor, pages, all, looked, scanning } = data;
		const filtered = meaning(query), ids = [...picked];
		return html`
			<div class="stack tight">
				<nav class="tabs" aria-label="Status">${["", ...statuses].map((status) => html`<a key=${status} href=${href("/tasks", { ...query, cursor: "", status, error: status === "failed" ? query.error : "" })} aria-current=${(query.status ?? "") === status ? "true" : undefined}>${status ? title(status) : "All"}</a>`)}</nav>
				<${Filter} label="Filter tasks" other="an id, or a text in the params" query=${query} words=${words} plain=${(plain) => this.plain(plain)} onChange=${(to) => this.filter(to)} />
			</div>
			${ids.length > 0 && html`<div class="picked row" role="group" aria-label="Selection"><b>${plural(ids.length, "task")} selected</b>
				${actionsOf(query.status).map((action) => html`<${Act} key=${action} role="producer" kind=${action === "delete" ? "danger" : ""} onClick=${() => selected({ action, ids: ids.map(Number) })}>${title(action)}<//>`)}
				<${Button} kind="quiet" onClick=${() => (picked = new Set(), this.setState({}))}>Clear<//></div>`}
			<${Card}>
				${news > 0 && html`<p class="row"><${Button} kind="primary" onClick=${reload}>${num(news)}${news === rows ? " or more" : ""} new<//></p>`}
				<${Table} caption=${filtered ? `Tasks with ${filtered}` : "All tasks"} rows=${shown} id="id" to="/tasks" cols=${columns}
					picked=${picked} onPick=${may("producer") ? undefined : (/** @type {Set<string|number>} */ to) => (picked = to, this.setState({}))} gone=${gone}
					empty=${!cursor && !scanning && html`<${Empty} title=${filtered ? "Nothing matches these filters" : "No tasks"}>${filtered && html`<${Button} onClick=${() => this.filter({})}>Clear the filters<//>`}<//>`} />
				<div class="row spread">
					<p class="small soft" role=${scanning ? "status" : undefined}>${scanning ? "Looking… " : ""}${pages > 1 || scanning ? `${plural(shown.length, "task")} found, looked at ${num(Math.min(looked, all))} of ${num(all)}` : ""}</p>
					<div class="row">
						${query.cursor && html`<${Link} class="button" to="/tasks" query=${{ ...query, cursor: "" }}>${query.order === "asc" ? "Oldest" : "Newest"}<//>`}
						${cursor && !scanning && (shown.length < rows
							? html`<${Link} class="button" to="/tasks" query=${{ ...query, scan: Number(query.scan ?? 1) * 2 }}>Look on<//>`
							: html`<${Link} class="button" to="/tasks" query=${{ ...query, cursor, scan: "" }}>${query.order === "asc" ? "Newer" : "Older"}<//>`)}
					</div>
				</div>
			<//>`;
	}
}

/** Counts what matches, which nothing does by itself. @param {Words} query */
async function count(query) {
	const { body } = await send("POST", "/tasks/actions", { action: "cancel", ...chosen(filter(query)), dry_run: true });
	done(`${plural(body.matched, "task matches", "tasks match")} now`);
}

/** @param {any} shown */
function tools({ query }) {
	const single = query.key || query.contains || query.param; // no act takes these filters
	const acts = single ? [] : actionsOf(query.status), what = meaning(query);
	return html`
		<${Link} class="button quiet" to="/tasks" query=${{ ...query, cursor: "", order: query.order === "asc" ? "" : "asc" }}>${query.order === "asc" ? "Newest first" : "Oldest first"}<//>
		${what && !single && html`<${Act} role="producer" kind="quiet" onClick=${() => count(query)}>Count<//>`}
		${what && acts.map((action) => html`<${Act} key=${action} role="producer" kind=${action === "delete" ? "danger" : ""} onClick=${() => many({ action, filter: filter(query), what: `with ${what}` })}>${title(action)} all…<//>`)}`;
}

/** @type {View} */
export default {
	title: ({ query }) => (query.status ? `${title(query.status)} tasks` : "Tasks"),
	every: (data) => (data?.pages > 1 ? 30000 : 5000),
	typed: true,
	async load({ get, query, data, anew, amend }) {
		/** @type {Task[]} */
		const found = [];
		const order = query.order || (ended.includes(query.status) ? "ended" : "desc"); // what has ended goes by its end, for which there is an index
		const rank = (/** @type {Task} */ task) => (order === "ended" ? Date.parse(task.completed_at ?? "") : order === "asc" ? -task.id : task.id);
		let cursor = query.cursor ?? "", pages = 0, all = data?.all ?? 0;
		do {
			const { body } = await get("/tasks", { ...listed(query), order, limit: rows - found.length, cursor });
			found.push(...body.tasks);
			cursor = body.next_cursor ?? "";
			if (++pages === 1 && cursor && found.length < rows) {
				const stats = (await get("/stats")).body, counts = query.type ? stats.types[query.type] ?? {} : stats.counts;
				all = Object.values(counts).reduce((sum, n) => sum + Number(n), 0);
			}
			if (cursor && found.length < rows && anew) amend({ rows: [...found], gone: new Set(), news: 0, cursor, pages, all, looked: pages * 10000, scanning: true });
		} while (cursor && found.length < rows && pages < pagesAtOnce * Number(query.scan ?? 1));
		const fresh = { cursor: cursor || null, pages, all, looked: pages * 10000 };
		if (anew || !data?.rows?.length || data.scanning) return { rows: found, gone: new Set(), news: 0, ...fresh };
		return { ...fresh, cursor: data.cursor, ...merge(found, data.rows, rank, !cursor) };
	},
	tools,
	Body,
};
