// Acts on many tasks: counted first, as many as were counted, and first a few if one likes.
import { get, Refusal, send } from "./api.js";
import { confirm, done, failed, ToType } from "./actions.js";
import { reloadNow } from "./live.js";
import { path } from "./routes.js";
import { openDialog } from "./parts/dialog.js";
import { Bar, Button, Component, html, Link, Note, Refused, Status } from "./parts/bits.js";
import { ended, firstLine, labelLines, num, plural, title } from "./text.js";

/** @import { Action, Closing, Doing, Many } from "./types/model" */

/** How many deletes need a word to be typed. */
const wordAbove = 1000;
const canaries = 5;
const did = { retry: "retried", cancel: "cancelled or asked to be", delete: "deleted" };

/** The tasks of POST /api/tasks/actions: without a filter it is all of them, which must be said. @param {Query} filter */
export const chosen = (filter) => (Object.keys(filter).length ? { filter } : { all: true });

/**
 * Counts, asks, does it part by part.
 * @extends {Component<Closing<Many>, Doing>}
 */
class Dialog extends Component {
	/** @param {Closing<Many>} props */
	constructor(props) {
		super(props);
		/** @type {Doing} */
		this.state = { matched: null, error: null, add: props.action === "retry" ? "1" : "", typed: "", done: 0, running: false, over: "", changed: false, tried: null };
		this.stopped = false;
	}
	componentDidMount() {
		this.count();
	}
	componentWillUnmount() {
		this.stopped = true;
	}

	request() {
		const { action, filter } = this.props, add = Number(this.state.add);
		return { action, ...chosen(filter), ...(action === "retry" && add ? { add_attempts: add } : {}) };
	}

	async count() {
		try {
			const { body } = await send("POST", "/tasks/actions", { ...this.request(), dry_run: true });
			this.setState({ matched: body.matched, error: null });
		} catch (error) {
			this.setState({ error });
		}
	}

	async run() {
		this.stopped = false;
		this.setState({ running: true, error: null, changed: false });
		const { matched } = this.state;
		let well = this.state.done;
		try {
			/** @type {any} */
			let expect = { expect: matched };
			for (let more = true; more && !this.stopped; expect = {}) {
				const { body } = await send("POST", "/tasks/actions", { ...this.request(), ...expect });
				more = body.more === true;
				this.setState({ done: (well += body.done) });
			}
			const left = this.stopped ? 0 : (matched ?? 0) - well, over = `${plural(well, "task")} ${did[this.props.action]}${left > 0 ? `, ${num(left)} left alone` : ""}`;
			this.setState({ over, running: false });
			done(over);
		} catch (error) {
			const mismatch = error instanceof Refusal && error.code === "count_mismatch";
			this.setState({ running: false, ...(mismatch ? { matched: error.body.matched, changed: true, typed: "" } : { error }) });
		}
		reloadNow();
	}

	/** Retries a few, and shows how they end. */
	async tryFew() {
		this.setState({ running: true, error: null });
		try {
			const ids = (this.props.ids ?? (await get("/tasks", { ...list(this.props.filter), limit: canaries, order: "desc" })).body.tasks.map((/** @type {any} */ task) => task.id)).slice(0, canaries);
			const { add_attempts } = /** @type {any} */ (this.request());
			const { body } = await send("POST", "/batch", { ops: ids.map((/** @type {number} */ id) => ({ op: "retry", id, ...(add_attempts ? { add_attempts } : {}) })) });
			await this.count();
			const refused = new Map(body.results.map((/** @type {any} */ result, /** @type {number} */ i) => [ids[i], result.success ? "" : result.error]));
			for (let open = true; open && !this.stopped; ) {
				const tried = await Promise.all(ids.map(async (/** @type {number} */ id) => ({ ...(await get("/tasks" + path(id))).body.task, refused: refused.get(id) })));
				open = tried.some((task) => !task.refused && !ended.includes(task.status));
				this.setState({ tried, running: false });
				if (open) await new Promise((later) => setTimeout(later, 1000));
			}
		} catch (error) {
			this.setState({ running: false, error });
		}
		if (!this.stopped) this.count();
	}

	render() {
		const { action, what = "", close } = this.props, { matched, error, add, typed, running, over, changed, tried } = this.state;
		const word = action === "delete" && (matched ?? 0) > wordAbove ? String(matched) : "", finished = this.state.done;
		return html`<div class="stack">
			${changed && html`<${Note} tone="warn" role="alert">The number has changed meanwhile, and nothing was done: it is ${num(matched ?? 0)} now.<//>`}
			${matched === null && !error && html`<p class="soft">Counting…</p>`}
			${matched !== null && !over && html`<p class="any">${title(action)} <b>${plural(matched, "task")}</b> ${what}.${action === "delete" ? " They cannot be had back." : action === "cancel" ? " Workers of claimed ones are asked; what they complete counts." : ""}</p>`}
			${over && html`<${Note} tone="good">${over}.<//>`}
			${action === "retry" && !over && html`<div class="field"><label for="add">More attempts for each</label><input id="add" type="number" min="0" max="2147483647" placeholder="0" value=${add} onInput=${(event) => this.setState({ add: event.currentTarget.value })} /><span class="small soft">Without, a task whose attempts are all used is left alone.</span></div>`}
			${tried && html`<div role="status"><h3>The ones tried first</h3><ul class="list">${tried.map((task) => html`<li key=${task.id}><${Link} to=${path("tasks", task.id)}>${task.id}<//><${Status} status=${task.status} />${task.refused ? html`<span class="bad">${task.refused}</span>` : task.status === "failed" && html`<span class="soft grow">${firstLine(task.error)}</span>`}</li>`)}</ul></div>`}
			${word && !over && html`<${ToType} key=${word} word=${word} onType=${(typed) => this.setState({ typed })} />`}
			${running && finished > 0 && html`<div><${Bar} part=${finished / (matched || 1)} label="Done" /><p class="small soft">${num(finished)} of ${num(matched ?? 0)}</p></div>`}
			${error && html`<${Refused} error=${error} />`}
			<div class="row end">
				${running && finished > 0 && html`<${Button} onClick=${() => void (this.stopped = true)}>Stop<//>`}
				<${Button} onClick=${() => close()}>${over || tried ? "Close" : "Leave it"}<//>
				${action === "retry" && !over && !tried && (matched ?? 0) > canaries && html`<${Button} disabled=${running} onClick=${() => this.tryFew()}>Try ${canaries} first<//>`}
				${!over && html`<button type="button" class=${"button " + (action === "delete" ? "danger" : "primary")} aria-busy=${running} disabled=${!matched || running || typed !== word} onClick=${() => this.run()}>${title(action)} ${matched === null ? "" : num(matched)}</button>`}
			</div>
		</div>`;
	}
}

/** A filter of an action as that of a list. @param {Query} filter */
const list = ({ labels = {}, ...rest }) => ({ ...rest, label: labelLines(labels) });

/** @param {Many} many */
export const many = (many) => openDialog((close) => html`<${Dialog} ...${many} close=${close} />`, { title: `${title(many.action)} all that match` });

/** The same for ticked rows. @param {{action: Action, ids: number[]}} what */
export async function selected({ action, ids }) {
	if (ids.length > 1 || action === "delete") {
		const sure = await confirm({ title: `${title(action)} what is selected`, body: `${title(action)} ${plural(ids.length, "task")}?`, yes: `${title(action)} ${num(ids.length)}`, danger: action === "delete" });
		if (!sure) return;
	}
	let well = 0;
	/** @type {any[]} */
	const refused = [];
	try {
		for (let i = 0; i < ids.length; i += 1000) {
			const part = ids.slice(i, i + 1000), { body } = await send("POST", "/batch", { ops: part.map((id) => ({ op: action, id })), return: "minimal" });
			body.results.forEach((/** @type {any} */ result, /** @type {number} */ at) => (result.success ? well++ : refused.push({ id: part[at], ...result })));
		}
	} catch (error) {
		failed(error);
	}
	done(`${plural(well, "task")} ${did[action]}${refused.length ? `, ${num(refused.length)} refused` : ""}`);
	await reloadNow();
	if (refused.length) {
		await openDialog(() => html`<ul class="list">${refused.slice(0, 100).map((result) => html`<li key=${result.id}><${Link} to=${path("tasks", result.id)}>${result.id}<//><span class="grow">${result.error}. ${result.message}</span></li>`)}</ul>`, { title: `${plural(refused.length, "task")} refused` });
	}
}
