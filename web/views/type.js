// One task type: its numbers, its settings, what holds it up.
import { Age, Card, Counts, Empty, Facts, html, Link, Rates, Stat, TaskLink, Time, Tone } from "../parts/bits.js";
import { History } from "../parts/history.js";
import { Table } from "../parts/table.js";
import { Act, act, form } from "../actions.js";
import { newest } from "../places.js";
import { path } from "../routes.js";
import { state } from "../store.js";
import { unfit } from "../submitbody.js";
import { backoffWords, byClaim, dur, num, parseDur, rate, statuses, typedDur } from "../text.js";
import { Groups } from "./failures.js";
import { Shares, sharesShown } from "./shares.js";
import { Why } from "./task.js";

/** @import { Column, Event, Setting, Task, Type, TypeData, View } from "../types/model" */

/** The number of claims, and groups of failures, shown. */
const claims = 20, errors = 5;

const plain = (/** @type {number|null} */ n) => String(n ?? "");

const deadLetterWords = (/** @type {{task_type: string, max_attempts?: number}} */ to) => [to.task_type, ...(to.max_attempts ? [to.max_attempts] : [])].join(", ");

/** Each setting: name, label, how it is shown, how it is typed and read. @type {Setting[]} */
const settings = [
	{ name: "max_claimed", label: "At most claimed", hint: "At one time; empty: no limit.", show: num, typed: plain, read: Number },
	{ name: "max_claimed_per_key", label: "At most claimed per share key", hint: "At one time; empty: no limit.", show: num, typed: plain, read: Number },
	{ name: "rate_limit_per_key", label: "Claims a second per share key", hint: "Empty: no limit.", show: rate, typed: plain, read: Number },
	{ name: "fair", label: "Share keys take turns", hint: "yes, or empty: the oldest task first.", show: () => "yes", typed: (fair) => (fair ? "yes" : ""), read: (text) => text.trim() === "yes" },
	{ name: "rate_limit", label: "Claims a second", hint: "Empty: no limit.", show: rate, typed: plain, read: Number },
	{ name: "delay_ms", label: "Delay", hint: "As 30 s, 5 min. Empty: none.", show: dur, typed: typedDur, read: parseDur },
	{
		name: "dead_letter", label: "Dead letters", hint: "Type that gets copies of failed tasks, perhaps with a number of attempts: mail-dead, 5. Empty: none.",
		show: deadLetterWords, typed: (to) => (to ? deadLetterWords(to) : ""),
		read: (text) => {
			const [task_type, most] = text.split(",").map((part) => part.trim());
			return most ? { task_type, max_attempts: Number(most) } : { task_type };
		},
	},
	{ name: "lease_ms", label: "Lease", hint: "As 30 s, 5 min, 1 h. Empty: the cluster's default.", show: dur, typed: typedDur, read: parseDur },
	{ name: "max_attempts", label: "Attempts", hint: "0: no limit. Empty: the cluster's default.", show: (n) => n || "no limit", typed: plain, read: Number },
	{ name: "retention_ms", label: "Kept after the end", hint: "As 1 d; -1: until deleted. Empty: the cluster's default.", show: (ms) => (ms < 0 ? "until deleted" : dur(ms)), typed: (ms) => (ms < 0 ? "-1" : typedDur(ms)), read: (text) => (text.trim() === "-1" ? -1 : parseDur(text)) },
	{
		name: "backoff", label: "Backoff", hint: "First wait, factor, longest wait, jitter: 1 s, 2, 10 min, 0.2. Empty: the cluster's default.", show: backoffWords,
		typed: (backoff) => (backoff ? [typedDur(backoff.initial_ms), backoff.factor, typedDur(backoff.max_ms), backoff.jitter].join(", ") : ""),
		read: (text) => {
			const [initial, factor = "2", max = "1 h", jitter = "0.2"] = text.split(",");
			return { initial_ms: parseDur(initial), factor: Number(factor), max_ms: parseDur(max), jitter: Number(jitter) };
		},
	},
];

/** @param {Type} type @param {Setting} setting */
const isSet = (type, { name }) => type[name] !== null && type[name] !== false;

/** What of a form differs from the type. @param {Type} type @param {Words} values */
function changed(type, values) {
	return settings.filter(({ name, typed }) => values[name].trim() !== typed(type[name])).map((setting) => ({ ...setting, to: values[setting.name].trim() ? setting.read(values[setting.name]) : null }));
}

/** @param {Type} type */
const edit = (type) =>
	form({
		title: `Settings of ${type.task_type}`, yes: "Save", wide: true,
		fields: settings.map(({ name, label, hint, typed }) => ({ name, label, hint, value: typed(type[name]) })),
		below: (values) => {
			const list = changed(type, values);
			return list.length > 0 && html`<ul class="list" aria-live="polite">${list.map(({ name, label, typed }) => html`<li key=${name}><b>${label}</b><span>${typed(type[name]) || "not set"} <span aria-label="becomes">→</span> ${values[name].trim() || "not set"}</span></li>`)}</ul>`;
		},
		submit: async (values) => {
			const list = changed(type, values), wrong = list.find(({ to }) => Object.values(Object(to)).concat(to).some(Number.isNaN));
			if (wrong) throw unfit(wrong.name, `Invalid ${wrong.label.toLowerCase()}: ${wrong.hint}`);
			if (list.length) await act(`Settings of ${type.task_type} changed`, "PATCH", "/types" + path(type.task_type), Object.fromEntries(list.map(({ name, to }) => [name, to])));
		},
	});

/** @type {Column<Task>[]} */
const claimColumns = [
	{ key: "id", title: "Id", main: true },
	{ key: "worker_id", title: "Worker", wide: true },
	{ key: "claimed_at", title: "Claimed", time: true },
	{ key: "lease_expires_at", title: "Lease ends", time: true },
	{ key: "attempts", title: "Attempt", num: true },
];

/** @param {{data: TypeData, params: Words}} props */
function Body({ data, params }) {
	const { type, held, head, why, failed, seen, last, shares } = data, { name } = params;
	if (!type) return html`<${Card}><${Empty} title="There is no such type"><p>It has no tasks and no settings.</p><//><//>`;
	const shown = settings.filter((setting) => isSet(type, setting)), total = Object.values(type.counts).reduce((sum, n) => sum + Number(n), 0);
	return html`
		<div class="stats">
			<${Counts} counts=${type.counts} of=${statuses} type=${name} />
		</div>
		<div class="stats">
			<${Stat} label="Oldest pending" value=${html`<${Age} ms=${type.counts.pending ? type.oldest_wait_ms : null} units=${1} />`} />
			<${Rates} of=${type} />
		</div>
		${total === 0 && html`<${Card}><${Empty} title="No tasks of this type; it has settings" /><//>`}
		${head && html`<${Why} why=${why} task=${head} heading=${html`Why its first, <${TaskLink} id=${head.id} />, is not running`} />`}
		${failed.failures.length > 0 && html`<${Card} title="Failed, by error" tools=${failed.groups > failed.failures.length && html`<${Link} to="/failures" query=${{ type: name }}>All ${num(failed.groups)} errors<//>`}><${Groups} groups=${failed.failures} /><//>`}
		${total > 0 && html`<${History} seen=${seen} />`}
		<${Card} title="Settings" tools=${html`<${Act} role="operator" onClick=${() => edit(type)}>Change<//>`}>
			<${Facts} of=${[["Claims", type.paused ? html`<${Tone} tone="warn">paused<//>` : "go on"], ...shown.map(({ name: setting, label, show }) => [label, show(type[setting])])]} />
			${last && html`<p class="small soft">Changed <${Time} at=${last.time} />${last.message.includes(" by ") && last.message.slice(last.message.lastIndexOf(" by "))}</p>`}
		<//>
		${(shares.length > 0 || type.fair || type.max_claimed_per_key !== null || type.rate_limit_per_key !== null) && html`<${Shares} type=${name} shares=${shares} />`}
		${held.length > 0 && html`<${Card} title="Held now, longest first" tools=${type.counts.claimed > held.length && html`<${Link} to="/tasks" query=${{ status: "claimed", type: name }}>All ${num(type.counts.claimed)}<//>`}><${Table} caption="Claims" rows=${held} id="id" to="/tasks" cols=${claimColumns} /><//>`}`;
}

/** Whether there is anything of a type: the API answers zeros for any name. @param {Type} type */
const isKnown = (type) => type.paused || Object.values(type.counts).some(Boolean) || settings.some((setting) => isSet(type, setting));

/** @param {{data: {type?: Type}}} shown */
function tools({ data: { type } }) {
	if (!type) return null;
	return html`<${Act} role="operator" kind=${type.paused ? "primary" : ""} onClick=${() => act(type.paused ? `${type.task_type} goes on` : `${type.task_type} is paused`, "PATCH", "/types" + path(type.task_type), { paused: !type.paused })}>${type.paused ? "Resume" : "Pause"}<//>
		<${Link} class="button" to="/tasks" query=${{ type: type.task_type }}>Its tasks<//>`;
}

/** @type {View} */
export default {
	title: ({ params }) => params.name,
	every: 2000,
	seldom: 10000,
	async load({ ask, get, params: { name }, data, fresh }) {
		const { body } = await get("/types" + path(name)), type = isKnown(body.type) ? body.type : undefined;
		if (fresh) return { ...data, type };
		const [held, first, failed, seen, shares, changes] = await Promise.all([
			ask("/tasks", { task_type: name, status: "claimed", limit: claims }).then(({ tasks }) => tasks),
			ask("/tasks", { task_type: name, status: "pending", limit: 1 }).then((body) => body.tasks[0]),
			ask("/failures", { task_type: name, limit: errors }),
			ask("/history", { task_type: name }),
			ask("/types" + path(name) + "/shares", { order: "pending", limit: sharesShown }).then((body) => body.shares),
			state.me?.task_types ? [] : newest(get, { event: "type_changed" }, 1000).then(({ events }) => events),
		]);
		const why = first ? await ask("/tasks" + path(first.id) + "/why") : null;
		return {
			type, seen, head: first, why, failed, shares,
			held: held.sort(byClaim),
			last: changes.findLast((/** @type {Event} */ event) => event.message === name || event.message.startsWith(name + " ")),
		};
	},
	tools,
	Body,
};
