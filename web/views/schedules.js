// All schedules: when each runs next, and what it submitted last.
import { Button, Card, Code, Empty, html, Time, Tone } from "../parts/bits.js";
import { Table } from "../parts/table.js";
import { Act } from "../actions.js";
import { changeQuery, path } from "../routes.js";
import { planWords } from "../plan.js";
import { pagesOf } from "../schedulepages.js";
import { num } from "../text.js";
import { edit } from "./schedule.js";

/** @import { Column, Schedule, View } from "../types/model" */

/** The plan of a schedule in words, and as written. @param {{schedule: Schedule}} props */
export function Plan({ schedule }) {
	const { words, written } = planWords(schedule);
	return html`${words} ${written && html`<span class=${"mono cron" + (words ? " soft" : "")}>${written}</span>`}`;
}

/** @type {Column<Schedule>[]} */
const columns = [
	{ key: "name", title: "Name", main: true, sort: true },
	{ key: "type", title: "Type", wide: true, sort: (schedule) => schedule.task.task_type ?? "default", cell: (schedule) => schedule.task.task_type ?? "default" },
	{ key: "plan", title: "Plan", wide: true, cell: (schedule) => html`<${Plan} schedule=${schedule} />` },
	{ key: "timezone", title: "Zone" },
	{ key: "next", title: "Next", sort: (schedule) => schedule.next_run_at ?? "~", cell: (schedule) => (schedule.paused ? html`<${Tone} tone="warn">paused<//>` : schedule.next_run_at ? html`<${Time} at=${schedule.next_run_at} />` : "never again") },
	{ key: "last_run_at", title: "Last", sort: true, time: true },
	{ key: "task", title: "Its task", num: true, cell: (schedule) => schedule.last_task_id && html`<a href=${"#" + path("tasks", schedule.last_task_id)}>${schedule.last_task_id}</a>` },
	{ key: "skipped", title: "Skipped", num: true, hint: "slots passed over since it was set", sort: true },
];

/** @param {{data: {schedules: Schedule[], more: boolean, pages: number}}} props */
function Body({ data: { schedules, more, pages } }) {
	if (!schedules.length) {
		return html`<${Card}><${Empty} title="No schedules yet"><p>A schedule submits a task again and again. Make one with the button, or:</p><${Code}>${`claimq schedule set nightly report --cron '30 2 * * *' --timezone Europe/Paris`}<//><//><//>`;
	}
	return html`<${Card}><${Table} caption="Schedules" rows=${schedules} id="name" to="/schedules" cols=${columns} sort="name" />
		${more && html`<p class="row more"><span class="soft">The first ${num(schedules.length)} by name</span><${Button} onClick=${() => changeQuery({ pages: pages + 1 })}>Show the next page<//></p>`}<//>`;
}

/** @type {View} */
export default {
	title: () => "Schedules",
	every: 5000,
	async load({ ask, query }) {
		const pages = Number(query.pages) || 1;
		return { ...await pagesOf(ask, (_, n) => n < pages), pages };
	},
	tools: () => html`<${Act} role="operator" kind="primary" onClick=${() => edit()}>New schedule<//>`,
	Body,
};
