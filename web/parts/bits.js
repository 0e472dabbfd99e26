// Small things that every view shows: times, statuses, numbers, cards; with what they are made of.
import { html, Component } from "./html.js";
import { href, path } from "../routes.js";
import { state } from "../store.js";
import { ago, dur, firstLine, hint, num, rate, statusMark, title, when } from "../text.js";

export { html, Component };

/** @type {Set<() => void>} */
const ticking = new Set();
setInterval(() => document.hidden || ticking.forEach((tick) => tick()), 1000);

/** Shows what text() says, and looks again each second. @extends {Component<{text: () => any}>} */
export class Ticking extends Component {
	componentDidMount() {
		this.tick = () => this.props.text() !== this.text && this.setState({});
		ticking.add(this.tick);
	}
	componentWillUnmount() {
		if (this.tick) ticking.delete(this.tick);
	}
	render() {
		this.text = this.props.text();
		return this.text;
	}
}

/** The placeholder for an empty value. */
export const Nil = () => html`<span class="soft nil">–</span>`;

/** A time: relative with the absolute one in its title, or as the settings say. @param {{at: string|null|undefined}} props */
export function Time({ at }) {
	if (!at) return html`<${Nil} />`;
	const absolute = when(at);
	return html`<time datetime=${at} title=${absolute}>${state.settings.times === "relative" ? html`<${Ticking} text=${() => ago(at)} />` : absolute}</time>`;
}

/** A duration as of its answer, which counts up. @param {{ms: number|null|undefined, units?: number}} props */
export const Age = ({ ms, units }) => (ms === null || ms === undefined ? html`<${Nil} />` : dur(ms < 1000 ? ms : Math.floor(ms / 1000) * 1000, units));

/** The time since at, which counts up. @param {{at: number}} props */
export const Since = ({ at }) => html`<${Ticking} text=${() => dur(Math.max(1000, Math.floor((Date.now() - at) / 1000) * 1000))} />`;

/** What is left of a lease, counting down. @param {{left: number, whole: number, at: number}} props */
export const Countdown = ({ left, whole, at }) => html`<${Ticking} text=${() => `${dur(Math.floor(Math.max(0, left - (Date.now() - at)) / 1000) * 1000)} of ${dur(whole)} left`} />`;

/** @param {{status: string, cancel?: boolean}} props */
export const Status = ({ status, cancel }) => html`<span class="status" data-status=${status}><span aria-hidden="true">${statusMark(status)}</span> ${status}${cancel && html`<span class="soft">, cancel asked</span>`}</span>`;

/** A number; nought is quiet. @param {{n: number|null|undefined}} props */
export const Num = ({ n }) => (n === null || n === undefined ? html`<${Nil} />` : n === 0 ? html`<span class="soft nil">0</span>` : num(n));

/** A button that acts at once; its kind is its style. @param {{kind?: string, children?: any, [name: string]: any}} props */
export const Button = ({ kind = "", children, ...rest }) => html`<button type="button" class=${"button " + kind} ...${rest}>${children}</button>`;

/** @param {{to: string, query?: Query, children?: any, class?: string, title?: string}} props */
export const Link = ({ to, query, children, ...rest }) => html`<a href=${href(to, query)} ...${rest}>${children}</a>`;

/** @param {{label: string, value: any, to?: string, query?: Query, tone?: string, sub?: any, children?: any}} props */
export function Stat({ label, value, to, query, tone, sub, children }) {
	const inside = html`<span class="stat-label">${label}</span><span class="stat-value">${value}</span>${sub && html`<span class="small soft">${sub}</span>`}${children}`;
	return to ? html`<a class="stat" data-tone=${tone} href=${href(to, query)}>${inside}</a>` : html`<div class="stat" data-tone=${tone}>${inside}</div>`;
}

/** The number of tasks of each status, of a type or of all. @param {{counts: Record<string, number>, of: string[], type?: string}} props */
export const Counts = ({ counts, of, type }) => of.map((status) => html`<${Stat} key=${status} label=${title(status)} to="/tasks" query=${{ status, type }} value=${html`<${Num} n=${counts[status]} />`} tone=${status === "failed" && counts.failed ? "bad" : ""} />`);

/** The rates of submitted and ended tasks. @param {{of: {submitted_per_s: number, completed_per_s: number, failed_per_s: number}}} props */
export const Rates = ({ of }) => [["Submitted", of.submitted_per_s], ["Completed", of.completed_per_s], ["Failed for good", of.failed_per_s, "bad"]].map(([label, n, tone]) => html`<${Stat} key=${label} label=${label} value=${rate(Number(n))} sub="over the last minute" tone=${n && tone} />`);

/** @param {{title?: any, tools?: any, children?: any, id?: string, class?: string}} props */
export const Card = ({ title, tools, children, id, class: more = "" }) => html`<section class=${"card " + more} id=${id}>
	${title && html`<header class="card-head"><h2>${title}</h2>${tools && html`<div class="row">${tools}</div>`}</header>`}
	${children}
</section>`;

/** Names and values, of which those are left out that tell nothing. @param {{of: [any, any][]}} props */
export const Facts = ({ of }) => html`<dl class="facts">${of.map(([name, value]) => (value ?? "") !== "" && value !== false && html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** @param {{title: string, children?: any}} props */
export const Empty = ({ title, children }) => html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;

/** @param {{tone?: "bad"|"warn"|"good"|"info", children?: any, role?: string}} props */
export const Note = ({ tone = "info", children, role }) => html`<div class="note" data-tone=${tone} role=${role}>${children}</div>`;

/** What a refusal says, and what to do about it. @param {{error: any, tone?: "bad"|"info", id?: string}} props */
export const Refused = ({ error, tone = "bad", id }) => html`<div class="note" data-tone=${tone} role="alert" id=${id}><b>${error.message}</b>${hint(error) && html`<br />${hint(error)}`}</div>`;

/** Asks whose key is for some types which of them it shall be. @param {{query: Words}} props */
export const OfType = ({ query }) => html`<${Note}>Your key is for some types. Of which one? ${state.me?.task_types?.map((type) => html`<${Link} key=${type} class="tag" to=${state.place.path} query=${{ ...query, type }}>${type}<//> `)}<//>`;

/** A task by its number. @param {{id: number}} props */
export const TaskLink = ({ id }) => html`<${Link} to=${path("tasks", id)}>task ${id}<//>`;

/** Well or not, in a mark, a colour and a word that is read out. @param {{tone: string, children?: any}} props */
export const Tone = ({ tone, children }) => html`<span class="tone" data-tone=${tone}><span aria-hidden="true">${{ bad: "✗", good: "✓" }[tone] ?? "!"}</span> ${children ?? html`<span class="hide">${tone === "bad" ? "Bad" : "Warning"}</span>`}</span>`;

/** @param {{labels?: Words}} props */
export const Labels = ({ labels = {} }) => html`<span class="tags">${Object.entries(labels).map(([name, value]) => html`<a key=${name} class="tag" href=${href("/tasks", { label: name + ":" + value })}>${name}:${value}</a>`)}</span>`;

/** A text of which the first line is shown, and all of it when asked for. @param {{text: string}} props */
export const Long = ({ text }) => {
	const first = firstLine(text);
	return first === text ? text : html`<details class="long"><summary>${first}…</summary><pre tabindex="0">${text}</pre></details>`;
};

/** @param {{part: number, label: string, tone?: string}} props */
export const Bar = ({ part, label, tone }) => html`<progress class="bar" data-tone=${tone} max="1" value=${Math.min(1, Math.max(0, part))} aria-label=${label}></progress>`;

/** @param {{rows?: number}} props */
export const Skeleton = ({ rows = 6 }) => html`<div class="skeleton" aria-hidden="true">${Array.from({ length: rows }, (_, i) => html`<div key=${i}></div>`)}</div>`;

/** Copies text; on plain HTTP, where a page has no clipboard, by a selected field. @extends {Component<{text: string, label?: string}, {done?: boolean}>} */
export class Copy extends Component {
	async copy() {
		try {
			await navigator.clipboard.writeText(this.props.text);
		} catch {
			const field = document.createElement("textarea");
			field.value = this.props.text;
			field.className = "hide";
			(document.querySelector("dialog[open]") ?? document.body).append(field);
			const before = /** @type {HTMLElement|null} */ (document.activeElement);
			field.select();
			document.execCommand("copy");
			field.remove();
			before?.focus();
		}
		this.setState({ done: true });
		setTimeout(() => this.setState({ done: false }), 2000);
	}
	render() {
		return html`<${Button} kind="quiet" onClick=${() => this.copy()}>${this.state.done ? "Copied" : (this.props.label ?? "Copy")}<//>`;
	}
}

/** @param {{children: string}} props */
export const Code = ({ children }) => html`<div class="code"><pre tabindex="0">${children}</pre><${Copy} text=${children} /></div>`;
