// The charts of the last hour.
import { Card, Component, html } from "./bits.js";
import { Chart } from "./chart.js";
import { charts } from "../history.js";

/** @import { History as Seen } from "../types/model" */

/** Drawn when there is something new to draw, not with each refresh. @extends {Component<{seen: Seen|null}>} */
export class History extends Component {
	/** @param {{seen: Seen|null}} next */
	shouldComponentUpdate({ seen }) {
		return seen !== this.props.seen;
	}
	render() {
		const { seen } = this.props, drawn = seen && charts(seen);
		return seen && html`<${Card} title="The last hour" tools=${drawn && html`<span class="small soft">of the cluster, by minute</span>`}>
			${drawn ? html`<div class="charts">${drawn.map((chart) => html`<${Chart} key=${chart.title} ...${chart} />`)}</div>`
				: html`<p class="soft">${seen.kept ? "The charts begin with the second minute." : "This type has no history: there is room for 100 types."}</p>`}
		<//>`;
	}
}
