// All task types in one table, as the node sorts and finds them.
import { Age, Card, Component, Empty, html, Num } from "../parts/bits.js";
import { Table } from "../parts/table.js";
import { changeQuery } from "../routes.js";
import { num, rate, short, title } from "../text.js";

/** @import { Column, Type, Types, View } from "../types/model" */

/** The number shown at first and with each *more*, and the node's maximum. */
const rows = 200, rowsMax = 1000;
/** The time without typing after which the filter applies. */
const typingMS = 250;

/** @param {keyof Type["counts"]} key @returns {Column<Type>} */
const counted = (key) => ({ key, title: title(key), num: true, sort: true, cell: (type) => html`<${Num} n=${type.counts[key]} />` });
/** @param {"submitted_per_s"|"completed_per_s"|"failed_per_s"} key @param {string} head @returns {Column<Type>} */
const rated = (key, head) => ({ key, title: head, num: true, sort: true, hint: "a second, over the last minute", cell: (type) => (type[key] ? rate(type[key]).slice(0, -2) : html`<${Num} n=${0} />`) });

/** The settings of a type that change who gets its tasks, in words. @param {Type} type */
const limits = (type) => [type.paused && "paused", type.max_claimed !== null && `at most ${num(type.max_claimed)}`, type.max_claimed_per_key !== null && `at most ${num(type.max_claimed_per_key)} per key`, type.rate_limit_per_key !== null && `${short(type.rate_limit_per_key)}/s per key`, type.fair && "fair", type.rate_limit !== null && `${short(type.rate_limit)}/s`].filter(Boolean).join(", ");

/** Each that can be sorted by has the name of that order as its key. @type {Column<Type>[]} */
export const columns = [
	{ key: "name", title: "Type", main: true, sort: true, cell: (type) => type.task_type },
	counted("pending"), counted("claimed"), counted("scheduled"), counted("blocked"), counted("failed"),
	{ key: "oldest", title: "Oldest", num: true, hint: "age of the oldest pending task, since its submit", sort: true, cell: (type) => html`<${Age} ms=${type.counts.pending ? type.oldest_pending_age_ms : null} />` },
	rated("submitted_per_s", "In/s"), rated("completed_per_s", "Done/s"), rated("failed_per_s", "Fail/s"),
	{ key: "settings", title: "Settings", cell: limits },
];

/** @extends {Component<{data: Types & {order: string}, query: Words}, {word: string}>} */
class Body extends Component {
	state = { word: this.props.query.name ?? "" };
	typing = 0;

	/** @param {{query: Words}} before */
	componentDidUpdate({ query }) {
		if (query !== this.props.query && !this.typing) this.setState({ word: this.props.query.name ?? "" });
	}
	componentWillUnmount() {
		clearTimeout(this.typing);
	}

	/** Has the node look for a word once it is typed. @param {string} word */
	find(word) {
		this.setState({ word });
		clearTimeout(this.typing);
		this.typing = window.setTimeout(() => {
			this.typing = 0;
			changeQuery({ name: word.trim() });
		}, typingMS);
	}

	render() {
		const { types, total, matched, order } = this.props.data;
		if (!total) return html`<${Card}><${Empty} title="No types yet"><p>A type exists once it has a task or a setting.</p><//><//>`;
		return html`<div class="field"><label for="types-filter" class="hide">Filter by name</label><input id="types-filter" data-filter type="search" placeholder="Filter by name" value=${this.state.word} onInput=${(event) => this.find(event.currentTarget.value)} /></div>
			<${Card}><${Table} caption="Task types" rows=${types} id="task_type" to="/types" cols=${columns} sort=${order === "name" ? order : "-" + order} all=${matched} limit=${rows}
				onSort=${(key) => changeQuery({ order: key === "name" ? "" : key })} onMore=${types.length < rowsMax && (() => changeQuery({ limit: types.length + rows }))}
				empty=${html`<${Empty} title="No type's name contains this" />`} /><//>`;
	}
}

/** @type {View} */
export default {
	title: () => "Types",
	every: 2000,
	load: async ({ ask, query: { order = "name", name, limit = rows } }) => ({ ...await ask("/types", { order, name, limit }), order }),
	Body,
};
