// Actions: their permissions, dialogs and notices.
import { get, Refusal, send } from "./api.js";
import { reloadNow } from "./live.js";
import { nextId, set, state } from "./store.js";
import { Button, Component, html, Refused } from "./parts/bits.js";
import { openDialog } from "./parts/dialog.js";
import { placeOf } from "./places.js";
import { hint, needs } from "./text.js";

/** @import { Acting, Closing, Field, Form } from "./types/model" */

/** The reason why the user lacks the role, or "". The server enforces roles. @param {string} [role] */
export function may(role) {
	if (state.noLeader) return "Nothing can be changed while there is no leader.";
	if (state.session?.read_only) return "This page is read-only.";
	return !role || has(role) ? "" : needs(role);
}

/** Whether this person's key has a role. @param {string} role */
export const has = (role) => !!state.me && (state.me.roles.includes(role) || state.me.roles.includes("operator"));

/** Says in the polite live region what was done. @param {string} text @param {{tone?: string, href?: string, label?: string}} [more] */
export function done(text, more = {}) {
	const toast = { id: nextId(), text, ...more };
	set({ toasts: [...state.toasts.slice(-3), toast] });
	setTimeout(() => dismiss(toast.id), more.tone === "bad" ? 30000 : 10000);
}

/** @param {number} id */
export const dismiss = (id) => set({ toasts: state.toasts.filter((toast) => toast.id !== id) });

/** @param {unknown} error */
export function failed(error) {
	if (!(error instanceof Refusal)) console.error(error);
	const { message, body } = /** @type {any} */ (error), more = hint(error), task = /^\/tasks\/\d+/.exec(body?.path)?.[0]; // path: of a call without an answer
	done(more && more !== message ? `${message}. ${more}` : message, { tone: "bad", ...(task && { href: "#" + task, label: "Look at it" }) });
}

/**
 * A button that does something. It says why it is disabled, and waits for what it began.
 * @extends {Component<Acting, {busy?: boolean}>}
 */
export class Act extends Component {
	async act() {
		if (this.busy) return; // it was clicked twice
		this.setState({ busy: (this.busy = true) });
		try {
			await this.props.onClick();
		} catch (error) {
			failed(error);
		}
		this.setState({ busy: (this.busy = false) });
	}
	render() {
		const { role, kind = "", children, disabled, title } = this.props, why = may(role);
		return html`<button type="button" class=${"button " + kind} disabled=${disabled || !!why} title=${why || title} aria-description=${why || undefined} aria-busy=${this.state.busy} onClick=${() => this.act()}>${children}</button>`;
	}
}

/** Does one call, says what was done and shows it. @param {string} text @param {string} method @param {string} path @param {any} [body] */
export async function act(text, method, path, body) {
	const answer = await send(method, path, body);
	const before = answer.index && state.me?.task_types == null ? await placeOf(get, answer.index - 1) : "";
	const place = before ? { href: `#/trail?after=${before}`, label: "in the trail" } : {};
	done(answer.body.repeated ? text + " (it was so already)" : text, place);
	await reloadNow();
	return answer;
}

/** A text that must be typed to confirm an action. @param {{word: string, onType: (typed: string) => void}} props */
export const ToType = ({ word, onType }) => html`<label class="field">Type <b class="mono">${word}</b> to go on<input autocomplete="off" spellcheck=${false} onInput=${(event) => onType(event.currentTarget.value)} /></label>`;

/** A form that keeps its input and shows a refusal at the field that it names. @extends {Component<Closing<Form>, {values: Query, error: any, busy: boolean}>} */
class Fields extends Component {
	/** @param {Closing<Form>} props */
	constructor(props) {
		super(props);
		this.state = { values: Object.fromEntries(props.fields.map(({ name, value = "" }) => [name, value])), error: /** @type {any} */ (null), busy: false };
	}
	/** @param {Event} event */
	async send(event) {
		event.preventDefault();
		if (this.busy) return;
		this.setState({ busy: (this.busy = true), error: null });
		try {
			this.props.close((await this.props.submit(this.state.values)) ?? true);
		} catch (error) {
			this.setState({ busy: (this.busy = false), error });
		}
	}
	/** @param {Field} field @param {boolean} autofocus */
	field({ name, label, type = "text", hint: more, required, options, list, placeholder, mono }, autofocus) {
		const { values, error } = this.state, wrong = error?.body?.field?.split(/[.[]/)[0] === name;
		const common = {
			name, required, placeholder, autofocus, id: "f-" + name, class: mono ? "mono" : "", "aria-invalid": wrong || undefined, "aria-describedby": wrong ? "form-error" : more ? "h-" + name : undefined,
			onInput: (/** @type {any} */ event) => this.setState({ values: { ...values, [name]: type === "checkbox" ? event.currentTarget.checked : event.currentTarget.value } }),
		};
		const input = options
			? html`<select ...${common} value=${values[name]}>${options.map((option) => (typeof option === "string" ? [option, option] : option)).map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select>`
			: type === "textarea" ? html`<textarea ...${common} rows=${name === "labels" ? 3 : 6} spellcheck=${false} value=${values[name]}></textarea>`
			: type === "checkbox" ? html`<input ...${common} type="checkbox" checked=${values[name]} />`
			: html`<input ...${common} type=${type} step=${type === "number" ? "any" : type === "datetime-local" ? "1" : undefined} list=${list && "l-" + name} autocomplete="off" value=${values[name]} />`;
		return html`<div key=${name} class=${"field" + (type === "checkbox" ? " check" : "")}><label for=${"f-" + name}>${label}</label>${input}
			${list && html`<datalist id=${"l-" + name}>${list.map((value) => html`<option key=${value} value=${value}></option>`)}</datalist>`}
			${more && html`<span class="small soft" id=${"h-" + name}>${more}</span>`}</div>`;
	}
	render() {
		const { fields, yes, intro, below, danger, word, close } = this.props, { values, error, busy } = this.state;
		return html`<form class="stack" onSubmit=${(event) => this.send(event)}>
			${intro}
			${fields.length > 0 && html`<div class="fields">${fields.map((field, i) => this.field(field, i === 0))}</div>`}
			${word && html`<${ToType} word=${word} onType=${(typed) => this.setState({ values: { word: typed } })} />`}
			${below?.(values)}
			${error && html`<${Refused} error=${error} id="form-error" />`}
			<div class="row end"><${Button} onClick=${() => close()}>Leave it<//><button class=${"button " + (danger ? "danger" : "primary")} aria-busy=${busy} disabled=${!!word && values.word !== word}>${yes}</button></div>
		</form>`;
	}
}

/** @param {Form} form @returns {Promise<any>} what submit returned, undefined if it was left */
export const form = ({ title, wide, ...rest }) => openDialog((close) => html`<${Fields} ...${rest} close=${close} />`, { title, wide });

/** Asks before something is done. With word, it has to be typed. @param {{title: string, body: any, yes: string, danger?: boolean, word?: string}} question @returns {Promise<boolean>} */
export const confirm = async ({ body: intro, ...question }) => !!(await form({ ...question, intro, fields: [], submit: async () => true }));
