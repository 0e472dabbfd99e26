// All task types in one table.
import { html, Component } from "../parts/html.js";
import { Age, Card, Empty, Num } from "../parts/bits.js";
import { Table } from "../parts/table.js";
import { num, rate, short, title } from "../text.js";

/** @import { Column } from "../parts/table.js" */
/** @import { Type } from "../types/model" */

/** @param {keyof Type["counts"]} key @returns {Column<Type>} */
const counted = (key) => ({ key, title: title(key), num: true, sort: (type) => type.counts[key], cell: (type) => html`<${Num} n=${type.counts[key]} />` });
/** @param {string} key @param {string} head @param {"submitted_per_s"|"completed_per_s"|"failed_per_s"} field @returns {Column<Type>} */
const rated = (key, head, field) => ({ key, title: head, num: true, sort: (type) => type[field], hint: "a second, over the last minute", cell: (type) => (type[field] ? rate(type[field]).slice(0, -2) : html`<${Num} n=${0} />`) });

/** The settings of a type that change who gets its tasks, in words. @param {Type} type */
const limits = (type) => [type.paused && "paused", type.max_claimed !== null && `at most ${num(type.max_claimed)}`, type.rate_limit !== null && `${short(type.rate_limit)}/s`].filter(Boolean).join(", ");

/** @type {Column<Type>[]} */
export const columns = [
  { key: "task_type", title: "Type", main: true, sort: true },
  counted("pending"), counted("claimed"), counted("scheduled"), counted("blocked"), counted("failed"),
  { key: "oldest", title: "Oldest", num: true, hint: "age of the oldest pending task", sort: (type) => (type.counts.pending ? type.oldest_pending_age_ms : -1), cell: (type) => html`<${Age} ms=${type.counts.pending ? type.oldest_pending_age_ms : null} />` },
  rated("in", "In/s", "submitted_per_s"), rated("done", "Done/s", "completed_per_s"), rated("fail", "Fail/s", "failed_per_s"),
  { key: "settings", title: "Settings", sort: (type) => Number(type.paused), cell: limits },
];

/** @extends {Component<{data: {types: Type[]}}, {word: string}>} */
class Body extends Component {
  state = { word: "" };
  render() {
    const { types } = this.props.data, word = this.state.word.toLowerCase();
    const rows = word ? types.filter((type) => type.task_type.toLowerCase().includes(word)) : types;
    if (!types.length) return html`<${Card}><${Empty} title="No types yet"><p>A type is there with its first task, or its first setting.</p><//><//>`;
    return html`<div class="field"><label for="types-filter" class="hide">Filter by name</label><input id="types-filter" data-filter type="search" placeholder="Filter by name" value=${this.state.word} onInput=${(/** @type {any} */ event) => this.setState({ word: event.currentTarget.value })} /></div>
      <${Card}><${Table} caption="Task types" rows=${rows} id="task_type" to="/types" cols=${columns} sort="task_type"
        empty=${html`<${Empty} title="No type has this in its name" />`} /><//>`;
  }
}

/** @type {import("../live.js").View} */
export default {
  title: () => "Types",
  every: (data) => (data?.types.length > 1000 ? 5000 : 2000),
  load: async ({ get }) => ({ types: (await get("/types")).body.types }),
  Body,
};
