// One schedule: its plan, its next slots, its task, what it submitted last.
import { Card, Component, Empty, Facts, html, Labels, Link, Stat, Status, Time } from "../parts/bits.js";
import { Payload } from "../parts/payload.js";
import { Table } from "../parts/table.js";
import { Act, act, confirm, done, form } from "../actions.js";
import { get, Refusal, send } from "../api.js";
import { newest } from "../places.js";
import { planWords } from "../plan.js";
import { rawField } from "../raw.js";
import { go, path } from "../routes.js";
import { jsonFault, unfit, withParams } from "../submitbody.js";
import { state } from "../store.js";
import { backoffWords, dur, num, parseDur, plural, typedDur, when } from "../text.js";

/** @import { Column, Event, Schedule, Plan, ScheduleData, View } from "../types/model" */

const slotsShown = 10, slotsAsked = 5, lastShown = 10, typingMS = 250;
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const overlaps = /** @type {[string, string][]} */ ([["skip", "skip the slot"], ["allow", "submit another"]]);
const catchUps = /** @type {[string, string][]} */ ([["one", "one task for all of them"], ["skip", "none"]]);

/** @param {[string, string][]} options @param {string} value */
const wordOf = (options, value) => options.find(([one]) => one === value)?.[1] ?? value;

/** @param {string} at @param {string|null} zone */
const inZone = (at, zone) => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: zone ?? "UTC" }).format(new Date(at));

/** Times of a plan: in its zone, here, and how far off. @param {{at: string[], zone: string|null}} props */
const Slots = ({ at, zone }) => html`<ol class="list slots">${at.map((time) => html`<li key=${time}><${Time} at=${time} /><span>${inZone(time, zone)} <span class="soft">${zone ?? "UTC"}</span></span>${zone !== here && html`<span class="soft">here ${when(time)}</span>`}</li>`)}</ol>`;

/** The next times of a typed plan, or its mistake, from the node. @extends {Component<{plan: Plan}, {at: string[], zone: string|null, wrong: string}>} */
class Preview extends Component {
	state = { at: /** @type {string[]} */ ([]), zone: /** @type {string|null} */ (null), wrong: "" };
	componentDidMount() {
		this.ask();
	}
	/** @param {{plan: any}} before */
	componentDidUpdate({ plan }) {
		if (JSON.stringify(plan) === JSON.stringify(this.props.plan)) return;
		clearTimeout(this.typing);
		this.typing = setTimeout(() => this.ask(), typingMS);
	}
	componentWillUnmount() {
		clearTimeout(this.typing);
	}
	async ask() {
		const { plan } = this.props, mine = (this.asked = JSON.stringify(plan)), zone = plan.timezone ?? null;
		const told = plan.cron || plan.every_ms ? await get("/slots", { ...plan, limit: slotsAsked }).then(({ body }) => ({ at: body.slots, zone, wrong: "" }), ({ message: wrong }) => ({ at: [], zone, wrong })) : { at: [], zone, wrong: "" };
		if (mine === this.asked) this.setState(told);
	}
	render() {
		const { at, zone, wrong } = this.state;
		return wrong ? html`<p class="small bad">${wrong}</p>` : html`<${Slots} at=${at} zone=${zone} />`;
	}
}

/** The plan that a form holds. @param {Words} values */
function planOf({ plan, timezone }) {
	const every = parseDur(plan.replace(/^every\s+/i, ""));
	return Number.isNaN(every) ? { cron: plan.trim(), timezone: timezone || "UTC" } : { every_ms: every };
}

/** Makes a schedule, or changes one. params and steps are the texts of its task's. @param {Schedule} [schedule] @param {string} [params] @param {string} [steps] */
export const edit = (schedule, params, steps) =>
	form({
		title: schedule ? `Change ${schedule.name}` : "New schedule", yes: schedule ? "Save" : "Make it", wide: true,
		fields: [
			...(schedule ? [] : [{ name: "name", label: "Name", required: true }]),
			{ name: "task_type", label: "Type of its tasks", value: schedule?.task.task_type ?? "", placeholder: "default" },
			{ name: "plan", label: "Plan", required: true, value: schedule ? (schedule.cron ?? "every " + typedDur(schedule.every_ms)) : "", hint: "Cron (30 2 * * 1-5, @daily), or how often (every 30 s)." },
			{ name: "timezone", label: "Time zone", value: schedule?.timezone ?? here, list: Intl.supportedValuesOf("timeZone"), hint: "Of cron." },
			{ name: "overlap", label: "If the last task has not ended", value: schedule?.overlap ?? "skip", options: overlaps },
			{ name: "catch_up", label: "Missed slots", value: schedule?.catch_up ?? "one", options: catchUps },
			...(schedule?.task.payload || (steps && params === undefined) ? [] : [{ name: "params", label: "Params", type: "textarea", mono: true, value: params ?? "{}", hint: "JSON." }]),
		],
		below: (values) => {
			const plan = planOf(values), { words } = planWords({ cron: plan.cron ?? null, every_ms: plan.every_ms ?? null });
			return html`<div aria-live="polite"><p class="soft">${words && `It runs ${words}${plan.cron ? `, ${plan.timezone}` : ""}.`}</p><${Preview} plan=${plan} /></div>`;
		},
		async submit(values) {
			const name = schedule?.name ?? values.name.trim(), { params: text, ...task } = { ...schedule?.task, task_type: values.task_type.trim() || undefined, params: values.params };
			if (text !== undefined && jsonFault(text)) throw unfit("params", `Params are no JSON: ${jsonFault(text)}`);
			const rest = { ...planOf(values), overlap: values.overlap, catch_up: values.catch_up, paused: schedule?.paused ?? false };
			await put(`Schedule ${name} ${schedule ? "changed" : "made"}`, name, task, { params: text, steps }, rest);
			if (!schedule) go(path("schedules", name));
		},
	});

/** The body of its task. @param {any} task @param {{params?: string, steps?: string}} raw the bytes that they stay */
const bodyOfTask = (task, { params, steps }) => withParams({ ...task, params: undefined, steps: undefined }, params, steps);

/** Sends a schedule. @param {string} text @param {string} name @param {any} task @param {{params?: string, steps?: string}} raw @param {any} rest */
const put = (text, name, task, raw, rest) => act(text, "PUT", "/schedules" + path(name), `{"task":${bodyOfTask(task, raw)},${JSON.stringify(rest).slice(1)}`);

/** The fields of a PUT except the task. @param {Schedule} schedule */
const settings = ({ cron, every_ms, timezone, overlap, catch_up, paused }) => ({ ...(cron === null ? { every_ms } : { cron, timezone }), overlap, catch_up, paused });

/** @typedef {NonNullable<Schedule["task"]["steps"]>[number]} NewStep */

/** @type {Column<NewStep>[]} */
const stepColumns = [
	{ key: "step", title: "Step", main: true },
	{ key: "task_type", title: "Type", cell: (step) => step.task_type ?? "default" },
	{ key: "depends_on", title: "Depends on", wide: true, cell: (step) => step.depends_on?.join(", ") },
];

/** @type {Column<Event>[]} */
const lastColumns = [
	{ key: "task_id", title: "Task", main: true },
	{ key: "time", title: "Submitted", time: true },
];

/** @param {{data: ScheduleData}} props */
function Body({ data }) {
	const { schedule, params, last, task, next = [] } = data;
	if (!schedule) return html`<${Card}><${Empty} title="There is no such schedule"><p>It was deleted, or never made.</p><//><//>`;
	const { words, written } = planWords(schedule), given = schedule.task, { task_type: type = "default" } = given;
	return html`
		<div class="stats">
			<${Stat} label="Next" tone=${schedule.paused ? "warn" : ""} value=${schedule.paused ? "paused" : schedule.next_run_at ? html`<${Time} at=${schedule.next_run_at} />` : "never again"} sub=${schedule.next_run_at && `${inZone(schedule.next_run_at, schedule.timezone)} ${schedule.timezone ?? "UTC"}; here ${when(schedule.next_run_at)}`} />
			<${Stat} label="Last task" value=${schedule.last_task_id ? num(schedule.last_task_id) : "none"} to=${schedule.last_task_id ? path("tasks", schedule.last_task_id) : undefined} sub=${task ? html`<${Status} status=${task.status} />` : schedule.last_task_id ? "removed since" : ""} />
			<${Stat} label="Slots skipped" value=${num(schedule.skipped)} sub="since it was set" tone=${schedule.skipped ? "warn" : ""} />
		</div>
		<${Card} title="Plan"><${Facts} of=${[
			["It runs", words || html`<span class="mono">${written}</span>`],
			["Written", words && written && html`<span class="mono">${written}</span>`],
			["Zone", schedule.timezone],
			["If the last task has not ended", wordOf(overlaps, schedule.overlap)],
			["Missed slots", wordOf(catchUps, schedule.catch_up)],
			["Made", html`<${Time} at=${schedule.created_at} />`],
			["Changed", html`<${Time} at=${schedule.updated_at} />`],
		]} /><//>
		${next.length > 0 && html`<${Card} title="Next slots"><${Slots} at=${next} zone=${schedule.timezone} /><//>`}
		<${Card} title="Its task"><${Facts} of=${[
			["Type", html`<${Link} to=${path("types", type)}>${type}<//>`],
			["Priority", given.priority && num(given.priority)],
			["Attempts", given.max_attempts === 0 ? "no limit" : given.max_attempts],
			["Delay", given.delay_ms !== undefined && dur(given.delay_ms)],
			["Lease", given.lease_ms && dur(given.lease_ms)],
			["Backoff", given.backoff && backoffWords(given.backoff)],
			["Kept after its end", given.retention_ms !== undefined && (given.retention_ms < 0 ? "until deleted" : dur(given.retention_ms))],
			["Group", given.group],
			["Share key", given.share_key],
			["It ends", given.steps && (given.finalize === "claim" ? "by a processor" : "with its last step")],
			["If a step fails", given.steps && (given.on_step_failure === "continue" ? "the others go on" : "the others are cancelled")],
			["Labels", given.labels && html`<${Labels} labels=${given.labels} />`],
		]} /><//>
		${given.steps && html`<${Card} title=${plural(given.steps.length, "step")}><${Table} caption="Steps of its task" rows=${given.steps} id="step" cols=${stepColumns} limit=${1000} /><//>`}
		${(params !== undefined || given.payload) && html`<${Payload} title="Params of its task" raw=${params} base64=${given.payload} name=${`schedule-${schedule.name}`} hidden=${!state.settings.params} />`}
		<${Card} title="Its latest tasks">${last.length
			? html`<${Table} caption="Latest tasks of the schedule" rows=${last} id="task_id" to="/tasks" cols=${lastColumns} />`
			: html`<p class="soft">${state.me?.task_types ? "The trail shows it to keys of all types." : "The trail has no events of it."}</p>`}<//>`;
}

/** @param {{data: ScheduleData}} shown */
function tools({ data: { schedule, params, steps } }) {
	if (!schedule) return null;
	const { name, paused, task } = schedule;
	return html`
		<${Act} role="producer" onClick=${async () => {
			const { id } = (await send("POST", "/tasks", bodyOfTask(task, { params, steps }))).body.task;
			done(`Task ${id} submitted`, { href: "#" + path("tasks", id), label: "show it" });
		}}>Submit now<//>
		<${Act} role="operator" onClick=${() => put(paused ? `${name} goes on` : `${name} is paused`, name, task, { params, steps }, { ...settings(schedule), paused: !paused })}>${paused ? "Resume" : "Pause"}<//>
		<${Act} role="operator" onClick=${() => edit(schedule, params, steps)}>Change<//>
		<${Act} role="operator" kind="danger" onClick=${async () => {
			if (!(await confirm({ title: `Delete ${name}`, body: "It submits no more tasks. Those that it has submitted stay.", yes: "Delete it", danger: true }))) return;
			await send("DELETE", "/schedules" + path(name));
			done(`Schedule ${name} deleted`);
			go("/schedules");
		}}>Delete<//>`;
}

/** @type {View} */
export default {
	title: ({ params }) => params.name,
	every: 5000,
	seldom: 10000,
	async load({ ask, get, params: { name }, data, anew, fresh }) {
		let answer;
		try {
			answer = await get("/schedules" + path(name));
		} catch (error) {
			if (error instanceof Refusal && error.code === "schedule_not_found") return { last: [] };
			throw error;
		}
		const { schedule } = answer.body, { cron, timezone, every_ms, last_task_id: id, next_run_at: first } = schedule;
		const [next, task, last] = await Promise.all([
			!first ? [] : data?.next?.[0] === first && !anew ? data.next : ask("/slots", { cron, timezone, every_ms, after: first, limit: slotsShown - 1 }).then(({ slots }) => [first, ...slots]),
			id && ask("/tasks" + path(id)).then((body) => body.task, () => null),
			fresh || state.me?.task_types ? (data?.last ?? []) : newest(get, { task_type: schedule.task.task_type ?? "default", event: "submitted" }, 1000).then(({ events }) => events.filter((event) => event.message === `schedule ${name}`).slice(-lastShown).reverse()),
		]);
		return { next, schedule, params: rawField(answer.text, "schedule", "task", "params"), steps: rawField(answer.text, "schedule", "task", "steps"), task, last };
	},
	tools,
	Body,
};
