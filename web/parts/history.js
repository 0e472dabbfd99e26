// The charts of what this tab has seen.
import { html } from "./html.js";
import { Card, Time } from "./bits.js";
import { Chart } from "./chart.js";
import { charts } from "../history.js";

/** @param {{points: import("../history.js").Point[]}} props */
export function History({ points }) {
  const drawn = charts(points);
  if (!drawn) return html`<${Card} title="As it goes"><p class="soft">The charts begin in a few seconds, and go on while this page is open.</p><//>`;
  return html`<${Card} title="As it goes" tools=${html`<span class="small soft">since this page was opened, <${Time} at=${new Date(points[0].at * 1000).toISOString()} /></span>`}><div class="charts">${drawn.map((chart) => html`<${Chart} key=${chart.title} ...${chart} />`)}</div><//>`;
}
