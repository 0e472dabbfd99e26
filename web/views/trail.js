// The trail: what happened, as it happens.
import { Button, Card, Component, Empty, Facts, html, Link, Note } from "../parts/bits.js";
import { acts, EventList, ofTasks } from "../parts/events.js";
import { Filter } from "../parts/filter.js";
import { Refusal, stream } from "../api.js";
import { newest, place } from "../places.js";
import { go, setQuery } from "../routes.js";
import { set, state } from "../store.js";
import { num, short } from "../text.js";

/** @import { View, Word } from "../types/model" */

const shownAtFirst = 100, kept = 500;
/** What comes faster cannot be read. */
const tooMany = 200;
/** The place before all events. */
const oldest = "0";
const flushMS = 500, againMS = 2000;

/** @type {Word[]} */
const words = [
	{ word: "type", hint: "of tasks of one type" }, { word: "worker", hint: "of one worker" },
	{ word: "event", hint: "of one kind, or several", many: true, values: [...ofTasks, ...acts] }, { word: "after", hint: "behind this place of the trail" },
];

/** The query of the page as the API has it. @param {Words} query */
const asked = ({ type, worker, event }) => ({ task_type: type, worker_id: worker, event: event?.split("\n") });

/** Follows the stream while it is looked at. @extends {Component<any, any>} */
class Body extends Component {
	/** @param {any} props */
	constructor(props) {
		super(props);
		this.state = { events: props.data.events, counts: new Map(), rate: 0, flooded: false, following: false, problem: /** @type {any} */ (null), gap: false, unseen: 0 };
		/** @type {any[]} since the last flush */
		this.come = [];
		this.last = props.data.last;
		this.looked = Date.now();
		this.look = () => this.follow();
	}

	componentDidMount() {
		document.addEventListener("visibilitychange", this.look);
		this.timer = setInterval(() => this.flush(), flushMS);
		if (!this.props.query.after) this.toEnd();
		this.follow();
	}
	componentWillUnmount() {
		document.removeEventListener("visibilitychange", this.look);
		clearInterval(this.timer);
		this.timer = 0;
		this.under?.abort();
	}
	/** @param {any} before */
	componentDidUpdate(before) {
		if (before.data !== this.props.data) {
			this.last = this.props.data.last;
			this.come = [];
			this.under?.abort();
			this.setState({ events: this.props.data.events, counts: new Map(), flooded: false, gap: false, unseen: 0 }, () => this.props.query.after || this.toEnd());
		}
		this.follow();
	}

	/** Has a stream open exactly while the tab is seen and updates are on. */
	async follow() {
		const wanted = state.live && !document.hidden && !!this.props.data.last && !this.props.query.after;
		if (!wanted) this.under?.abort();
		if (!wanted || this.busy) return;
		this.busy = true;
		const under = (this.under = new AbortController());
		try {
			await stream("/events", asked(this.props.query), {
				signal: under.signal, lastId: this.last,
				onOpen: () => this.setState({ following: true, problem: null }),
				onEvent: (event, id, name) => {
					if (name === "error") throw new Refusal(410, event);
					if (id) this.last = id;
					if (event) this.come.push(event);
				},
			});
		} catch (error) {
			if (!under.signal.aborted) this.stumble(error);
		}
		this.setState({ following: false });
		if (!under.signal.aborted) await new Promise((later) => setTimeout(later, againMS));
		this.busy = false;
		if (this.timer) this.follow();
	}

	/** @param {any} error */
	stumble(error) {
		if (error.code === "events_gone") {
			this.last = error.body.oldest;
			this.setState({ gap: true });
		} else if (error.code === "place_ahead") {
			this.last = ""; // of a state that was lost: from now on
			this.setState({ gap: true });
		} else this.setState({ problem: error });
	}

	flush() {
		const come = this.come, now = Date.now(), rate = (come.length * 1000) / Math.max(1, now - this.looked);
		this.looked = now;
		if (!come.length && !this.state.flooded) return;
		this.come = [];
		const flooded = rate > tooMany || (this.state.flooded && rate > tooMany / 2), counts = new Map(flooded ? this.state.counts : []);
		if (flooded) for (const { event } of come) counts.set(event, (counts.get(event) ?? 0) + 1);
		const atEnd = this.atEnd();
		this.setState({ events: flooded ? come.slice(-1) : [...this.state.events, ...come].slice(-kept), counts, rate, flooded, unseen: atEnd ? 0 : this.state.unseen + come.length }, () => atEnd && this.toEnd());
		set({ view: { ...state.view, at: now } });
	}

	atEnd() {
		const { reel } = this;
		return !!reel && reel.scrollTop + reel.clientHeight > reel.scrollHeight - 40;
	}

	/** Shows the newest. */
	toEnd() {
		this.reel?.scrollTo(0, this.reel.scrollHeight);
		if (this.state.unseen) this.setState({ unseen: 0 });
	}

	render() {
		const { query } = this.props, { events, counts, rate, flooded, following, problem, gap, unseen } = this.state;
		return html`
			<${Filter} query=${query} words=${words} label="Filter events" other="a worker" plain=${(word) => (/^\d+(\.\d+)?$/.test(word) ? { after: word } : { worker: word })} onChange=${setQuery} />
			${problem && html`<${Note} tone="warn">${problem.message}. It is tried again.<//>`}
			${gap && html`<${Note} tone="warn">Some events in between are kept no more: it goes on with the oldest that is.<//>`}
			${flooded && html`<${Card} title="Too many to follow"><p>${short(rate)}/s. Narrow it by type, worker or event.</p>
				<${Facts} of=${[...counts].sort((a, b) => b[1] - a[1]).map(([event, n]) => [event.replaceAll("_", " "), html`<button type="button" class="link" onClick=${() => go("/trail", { ...query, event })}>${num(n)}</button>`])} /><//>`}
			${!flooded && html`<${Card} title=${query.after === oldest ? "From the oldest" : query.after ? `After ${query.after}` : "The newest at the bottom"} tools=${html`${unseen > 0 && html`<${Button} onClick=${() => this.toEnd()}>${num(unseen)} new<//>`}<span class="small soft">${following ? html`<span class="dot on" aria-hidden="true"></span>following` : query.after ? "a page of the trail" : "not following"}</span>`}>
				${events.length ? html`<div class="reel" tabindex="0" role="group" aria-label="Events" ref=${(element) => void (this.reel = element)} onScroll=${() => this.state.unseen && this.atEnd() && this.setState({ unseen: 0 })}><${EventList} events=${events} /></div>` : html`<${Empty} title=${Object.keys(query).length ? "No event matches" : "No events kept"}>${following && html`<p>New events appear here.</p>`}<//>`}
				${query.after && this.props.data.more && html`<p><${Link} class="button" to="/trail" query=${{ ...query, after: place(events.at(-1)) }}>Later<//></p>`}
			<//>`}`;
	}
}

/** @param {any} shown */
const tools = ({ data, query }) => html`
	${query.after && html`<${Link} class="button" to="/trail" query=${{ ...query, after: "" }}>Follow the newest<//>`}
	${!query.after && data.events.length > 0 && html`<${Link} class="button quiet" to="/trail" query=${{ ...query, after: oldest }}>From the oldest<//>`}`;

/** @type {View} */
export default {
	title: () => "Trail",
	every: 0,
	typed: true,
	async load({ get, query, data, anew }) {
		if (!anew && data && !query.after) return data;
		if (query.after) {
			const from = async (/** @type {string} */ after) => (await get("/events", { ...asked(query), after, limit: shownAtFirst })).body;
			const body = await (query.after === oldest ? from("") : from(query.after).catch((error) => (["events_gone", "place_ahead"].includes(error.code) ? from("") : Promise.reject(error))));
			return { events: body.events, last: "", more: body.events.length > 0 };
		}
		const { events, at } = await newest(get, asked(query), shownAtFirst), last = events.at(-1);
		return { events, last: last && last.index > Number(at) ? place(last) : at };
	},
	tools,
	Body,
};
