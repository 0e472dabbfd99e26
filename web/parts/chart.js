// Charts: lines over time, each with a sentence that says the same and a table behind a button.
import { Button, Component, html } from "./bits.js";
import { watch } from "../store.js";
import { clock } from "../text.js";

/** @import { ChartProps } from "../types/model" */

const height = 180, tableRows = 60;
const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];

/** What draws, fetched with the first chart. @type {Promise<typeof import("../vendor/uPlot.esm.js").default>|null} */
let library = null;
function load() {
	library ??= import("../vendor/uPlot.esm.js").then(({ default: Plot }) => {
		const sheet = document.createElement("link");
		sheet.rel = "stylesheet";
		sheet.href = new URL("../vendor/uPlot.min.css", import.meta.url).href;
		document.head.append(sheet);
		return Plot;
	});
	return library;
}

/** Values without neighbours, which no line connects; null otherwise. @param {(number|null)[]} values */
function isolated(values) {
	const at = values.flatMap((value, i) => (value !== null && (values[i - 1] ?? null) === null && (values[i + 1] ?? null) === null ? [i] : []));
	return at.length ? at : null;
}

/** The colour that a custom property is now. @param {HTMLElement} within @param {string} name */
function colour(within, name) {
	const probe = document.createElement("i");
	probe.style.color = `var(${name})`;
	within.append(probe);
	const { color } = getComputedStyle(probe);
	probe.remove();
	return color;
}

/** @extends {Component<ChartProps, {}>} */
class Canvas extends Component {
	componentDidMount() {
		this.dark = matchMedia("(prefers-color-scheme: dark)");
		this.again = () => this.draw();
		this.dark.addEventListener("change", this.again);
		this.unwatch = watch(() => this.theme !== document.documentElement.dataset.theme && requestAnimationFrame(this.again ?? (() => {})));
		this.sizes = new ResizeObserver(([{ contentRect: { width } }]) => this.plot?.setSize({ width, height }));
		if (this.place) this.sizes.observe(this.place);
		load().then((Plot) => {
			this.Plot = Plot;
			this.draw();
		}, () => {}); // the sentence and the table say it all without it
	}
	componentDidUpdate() {
		this.plot?.setData(this.data());
	}
	componentWillUnmount() {
		this.unwatch?.();
		this.sizes?.disconnect();
		this.dark?.removeEventListener("change", this.again ?? (() => {}));
		this.plot?.destroy();
		this.place = null;
	}

	/** @returns {any} */
	data() {
		return [this.props.at, ...this.props.lines.map(({ values }) => values)];
	}

	draw() {
		const { place, Plot } = this, { lines, format, marks, least } = this.props;
		if (!place || !Plot) return;
		this.theme = document.documentElement.dataset.theme;
		this.plot?.destroy();
		const soft = colour(place, "--soft"), line = colour(place, "--line"), font = getComputedStyle(place).fontFamily;
		const axis = { stroke: soft, font: `12px ${font}`, ticks: { show: false }, grid: { stroke: line, width: 1 } };
		this.plot = new Plot({
			width: place.clientWidth, height, legend: { show: false }, cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } }, padding: [8, 18, 0, 0],
			scales: { y: { range: (_, _low, high) => [0, Math.max(high * 1.1, least)] } },
			axes: [{ ...axis, grid: { show: false }, values: (_, at) => at.map((one) => clock(one, one % 60 > 0)), space: 80, size: 28 },
				{ ...axis, incrs: marks, values: (_, ticks) => ticks.map((n) => (n ? format(n) : "0")), size: (_, texts) => 16 + 7 * Math.max(2, ...(texts ?? []).map((text) => text.length)), space: 36 }],
			series: [{}, ...lines.map(({ name, tone }, i) => ({ label: name, stroke: colour(place, `--c${tone}`), width: 2, dash: dashes[i], points: { show: false, filter: (/** @type {any} */ { data }, /** @type {number} */ series) => isolated(data[series]) }, spanGaps: false }))],
			hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
		}, this.data(), place);
	}

	/** Says what is under the pointer. @param {number|null|undefined} i */
	tell(i) {
		if (!this.told) return;
		const { at, lines, format } = this.props;
		this.told.textContent = i === null || i === undefined ? "" : [clock(at[i]), ...lines.map(({ name, values }) => `${name} ${values[i] === null ? "–" : format(/** @type {number} */ (values[i]))}`)].join("   ");
	}

	render() {
		return html`<div class="plot" role="img" aria-label=${`${this.props.title}: ${this.props.sentence}`} ref=${(element) => void (this.place = element)}></div><p class="soft told" aria-hidden="true" ref=${(element) => void (this.told = element)}></p>`;
	}
}

/** As many rows as can be read, the newest first. @param {ChartProps} props */
function rows({ at, lines }) {
	const step = Math.max(1, Math.ceil(at.length / tableRows));
	return at.map((when, i) => ({ when, values: lines.map(({ values }) => values[i]) })).filter((_, i) => (at.length - 1 - i) % step === 0).reverse();
}

/** @extends {Component<ChartProps, {table?: boolean}>} */
export class Chart extends Component {
	render() {
		const { title, lines, format, sentence } = this.props, { table } = this.state;
		return html`<figure class="chart">
			<figcaption><b>${title}</b><${Button} kind="quiet" aria-expanded=${!!table} onClick=${() => this.setState({ table: !table })}>${table ? "Hide the table" : "As a table"}<//><span class="soft">${sentence}</span></figcaption>
			<${Canvas} ...${this.props} />
			${lines.length > 1 && html`<ul class="legend">${lines.map(({ name, tone }, i) => html`<li key=${name}><svg width="26" height="8" aria-hidden="true"><line class=${"tone" + tone} x1="0" y1="4" x2="26" y2="4" stroke-width="2.5" stroke-dasharray=${dashes[i].join(" ") || "none"} /></svg>${name}</li>`)}</ul>`}
			${table && html`<div class="scroll chart-table" tabindex="0"><table><caption class="hide">${title}</caption><thead><tr><th scope="col">Time</th>${lines.map(({ name }) => html`<th key=${name} scope="col" class="num">${name}</th>`)}</tr></thead>
				<tbody>${rows(this.props).map(({ when, values }) => html`<tr key=${when}><th scope="row">${clock(when)}</th>${values.map((value, i) => html`<td key=${lines[i].name} class="num" data-label=${lines[i].name}><span>${value === null ? "–" : format(value)}</span></td>`)}</tr>`)}</tbody></table></div>`}
		</figure>`;
	}
}
