// The charts of the last hour.
import { html } from "./html.js";
import { Card, Time } from "./bits.js";
import { Chart } from "./chart.js";
import { charts } from "../history.js";

/** @import { History } from "../types/model" */

/** @param {{seen: History|null}} props */
export function History({ seen }) {
	if (!seen) return null;
	const drawn = charts(seen);
	return html`<${Card} title="The last hour" tools=${drawn && html`<span class="small soft">as ${seen.node_id} has seen it since <${Time} at=${seen.from} /></span>`}>
		${drawn ? html`<div class="charts">${drawn.map((chart) => html`<${Chart} key=${chart.title} ...${chart} />`)}</div>`
			: html`<p class="soft">${seen.kept ? "This node has looked for less than 20 s: the charts begin then." : "This node keeps no numbers of this type."}</p>`}
	<//>`;
}
