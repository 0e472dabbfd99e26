// The steps of a task, drawn in layers: what waits for what.
import { Button, Card, Component, html, Status } from "./bits.js";
import { Table } from "./table.js";
import { arranged, layers } from "../layers.js";
import { href, path } from "../routes.js";
import { num, plural, statusMark, statuses } from "../text.js";

/** @import { Column, Step } from "../types/model" */

/** More steps than this are lists, a layer each. */
const drawnMax = 60;
const box = { width: 184, height: 52, across: 64, down: 16, edge: 4 };
/** The height of an edge that passes a layer. */
const lane = 12;
const nameMax = 21;

/** @param {string} text @param {number} max */
const cut = (text, max) => (text.length > max ? Array.from(text).slice(0, max - 1).join("") + "…" : text);

/** "2 of 7 completed, 1 claimed". @param {Step[]} steps */
export function counted(steps) {
	const count = (/** @type {string} */ status) => steps.filter((step) => step.status === status).length;
	return [`${num(count("completed"))} of ${num(steps.length)} completed`, ...statuses.filter((status) => status !== "completed" && count(status)).map((status) => `${num(count(status))} ${status}`)].join(", ");
}

/** @type {Column<Step>[]} */
const columns = [
	{ key: "step", title: "Step", main: true },
	{ key: "status", title: "Status", cell: (step) => html`<${Status} status=${step.status} />` },
	{ key: "task_type", title: "Type", wide: true },
	{ key: "depends", title: "Depends on", wide: true, cell: (step) => step.depends_on.join(", ") },
	{ key: "error", title: "Error", wide: true, cell: (step) => step.error && html`<span class="clamp">${step.error}</span>` },
];

/** @param {{steps: Step[], caption: string}} props */
const StepTable = ({ steps, caption }) => html`<${Table} caption=${caption} rows=${steps} id="id" to="/tasks" cols=${columns} limit=${1000} />`;

/** @param {{steps: Step[]}} props */
function Drawing({ steps }) {
	const columns = arranged(steps), heights = columns.map((column) => column.reduce((sum, { step }) => sum + (step ? box.height : lane) + box.down, -box.down)), tallest = Math.max(...heights);
	const width = columns.length * (box.width + box.across) - box.across + 2 * box.edge, height = tallest + 2 * box.edge;
	/** @type {Map<string, {x: number, y: number, height: number, step: Step|null, from: string[]}>} */
	const places = new Map();
	columns.forEach((column, i) => {
		let y = box.edge + (tallest - heights[i]) / 2;
		for (const { name, step, from } of column) {
			const height = step ? box.height : lane;
			places.set(name, { step, from, height, x: box.edge + i * (box.width + box.across), y });
			y += height + box.down;
		}
	});
	const edges = [...places].flatMap(([to, { step, x, y, height, from }]) => from.flatMap((name) => {
		const start = places.get(name);
		if (!start) return [];
		const x1 = start.x + box.width, y1 = start.y + start.height / 2, y2 = y + height / 2, middle = (x1 + x) / 2;
		const met = steps.find((one) => one.step === name.split("\n")[0])?.status === "completed";
		return { key: `${name}\n${to}`, d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x} ${y2}${step ? "" : `H${x + box.width}`}`, met };
	}));
	return html`<div class="scroll" tabindex="0" role="group" aria-label="Drawing of the steps"><svg class="steps" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
		${edges.map(({ key, d, met }) => html`<path key=${key} class=${met ? "edge met" : "edge"} d=${d} />`)}
		${[...places.values()].map(({ step, x, y }) => step && html`<a key=${step.step} href=${href(path("tasks", step.id))} class="step" data-status=${step.status}>
			<title>${`${step.step} (${step.task_type}): ${step.status}${step.error ? `\n${step.error}` : ""}`}</title>
			<rect x=${x} y=${y} width=${box.width} height=${box.height} rx="9" />
			<text class="name" x=${x + 34} y=${y + 22}>${cut(step.step, nameMax)}</text>
			<text class="mark" x=${x + 12} y=${y + 22}>${statusMark(step.status)}</text>
			<text class="more" x=${x + 34} y=${y + 40}>${cut(`${step.status}, ${step.task_type}`, nameMax + 1)}</text>
		</a>`)}
	</svg></div>`;
}

/** @param {{steps: Step[]}} props */
const Layers = ({ steps }) => layers(steps).map((layer, i) => html`<details key=${i} open=${i === 0}><summary>${`Layer ${i + 1}: ${counted(layer)}`}</summary><${StepTable} steps=${layer} caption=${`Steps of layer ${i + 1}`} /></details>`);

/** A card with the drawing, and a table behind a button. @extends {Component<{steps: Step[]}, {table?: boolean}>} */
export class Steps extends Component {
	render() {
		const { steps } = this.props, { table } = this.state, large = steps.length > drawnMax;
		return html`<${Card} title=${plural(steps.length, "step")} tools=${!large && html`<${Button} kind="quiet" aria-pressed=${!!table} onClick=${() => this.setState({ table: !table })}>As a table<//>`}>
			<p class="soft">${counted(steps)}</p>
			${large ? html`<${Layers} steps=${steps} />` : table ? html`<${StepTable} steps=${steps} caption="Steps" />` : html`<${Drawing} steps=${steps} />`}
		<//>`;
	}
}
