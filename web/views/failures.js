// What failed, grouped by error: one look, one act for a thousand tasks.
import { Button, Card, Component, Copy, Empty, html, Link, Time } from "../parts/bits.js";
import { Act } from "../actions.js";
import { get } from "../api.js";
import { many } from "../many.js";
import { path, setQuery } from "../routes.js";
import { state } from "../store.js";
import { num, plural } from "../text.js";
import { fold, hourly, what } from "../failuregroups.js";

/** @import { Group as Failed, View } from "../types/model" */

const barHeight = 24;

/** How many failed in each of the last 24 hours: bars, and words. @param {{hours: number[]}} props */
function Hours({ hours }) {
	const top = Math.max(1, ...hours), words = hourly(hours);
	return html`<span class="hours small soft"><svg viewBox=${`0 0 ${hours.length * 6} ${barHeight + 1}`} aria-hidden="true">${hours.map((n, i) => {
		const height = n && Math.max(2, (n / top) * barHeight);
		return html`<rect key=${i} x=${i * 6} width="5" y=${barHeight - height} height=${height + 1} class=${n ? "" : "zero"} />`;
	})}</svg>${words}</span>`;
}

/** @extends {Component<{group: any, open: boolean, onOpen: (open: boolean) => void}>} */
class Group extends Component {
	render() {
		const { group, task_type: type, signature, example, count, first_at: first, last_at: last, ids, by_hour: hours } = this.props.group, { open, onOpen } = this.props;
		const filter = { error_group: group, task_type: type }, slug = "group-" + group;
		return html`<li class="failure">
			<div class="failure-head">
				<${Button} kind="quiet icon" aria-expanded=${!!open} aria-controls=${slug} aria-label=${`${open ? "Hide" : "Show"} an example of: ${signature || "no error"}`} onClick=${() => onOpen(!open)}>${open ? "▾" : "▸"}<//>
				<span class="failure-count num">${num(count)}</span>
				<span class="failure-text"><${Link} data-row class="signature" to="/tasks" query=${{ status: "failed", type, error: group }}>${signature || "Failed without an error"}<//>
					<span class="small soft"><${Link} to=${path("types", type)}>${type}<//>, first <${Time} at=${first} />, last <${Time} at=${last} /></span>
					<${Hours} hours=${hours} /></span>
				<span class="row">
					<${Act} role="producer" onClick=${() => many({ action: "retry", filter, what: what(this.props.group), ids })}>Retry…<//>
					<${Act} role="producer" kind="danger" onClick=${() => many({ action: "delete", filter, what: what(this.props.group) })}>Delete…<//>
				</span>
			</div>
			<div id=${slug} class="failure-example" hidden=${!open}>${open && html`
				<pre class="error" tabindex="0">${example || "It has no error text."}</pre>
				<p class="row"><span class="soft">Newest:</span> ${ids.map((/** @type {number} */ id) => html`<${Link} key=${id} class="tag" to=${path("tasks", id)}>${id}<//>`)}<${Copy} text=${example} label="Copy the error" /></p>`}</div>
		</li>`;
	}
}

/** Groups, of which one shows an example; with beside, of the largest at first, beside the list where there is room. @extends {Component<{groups: Failed[], beside?: boolean}, {open?: string}>} */
export class Groups extends Component {
	render() {
		const { groups, beside } = this.props, { open = beside ? groups[0]?.group : "" } = this.state;
		return html`<ol class=${beside ? "failures beside" : "failures"}>${groups.map((group) => html`<${Group} key=${group.group + group.task_type} group=${group} open=${open === group.group} onOpen=${(/** @type {boolean} */ to) => this.setState({ open: to ? group.group : "" })} />`)}</ol>`;
	}
}

/** The number of suggested types: those with most failures. Others may be typed. */
const typesOffered = 100;

/** @param {any} props */
function Body({ data, query, amend }) {
	const { failures, groups, looked, failed, cursor, types } = data;
	return html`
		<div class="row"><label for="failures-type" class="soft">Of type</label><input id="failures-type" class="narrow" type="search" data-filter autocomplete="off" spellcheck=${false} list="failures-types" placeholder="all" value=${query.type ?? ""} onChange=${(event) => setQuery({ type: event.currentTarget.value.trim() })} />
			<datalist id="failures-types">${types.map((/** @type {string} */ type) => html`<option key=${type} value=${type}></option>`)}</datalist></div>
		${!failures.length ? html`<${Card}><${Empty} title=${cursor ? "None among those scanned" : "Nothing has failed"}>${!cursor && html`<p>Tasks that failed for good are here, grouped by their error.</p>`}<//><//>`
			: html`<${Card}>
				<p class="soft">${looked < failed ? `Of ${num(failed)} failed tasks the newest ${num(looked)}` : plural(failed, "failed task")} in ${plural(groups, "group")}${failures.length < groups ? `, the largest ${num(failures.length)} shown` : ""}.</p>
				<${Groups} groups=${failures} beside />
				${cursor && html`<p><${Act} onClick=${async () => amend(fold(data, (await get("/failures", { task_type: query.type, cursor })).body))}>Look at older ones<//></p>`}
			<//>`}`;
}

/** @type {View} */
export default {
	title: () => "Failures",
	typed: true,
	every: (data) => (data?.pages > 1 ? 0 : 5000),
	async load({ ask, query, data, anew }) {
		const types = state.me?.task_types ?? (!data || anew ? (await ask("/types", { order: "failed", limit: typesOffered })).types.filter((/** @type {any} */ type) => type.counts.failed).map((/** @type {any} */ type) => type.task_type) : data.types);
		const body = await ask("/failures", { task_type: query.type });
		return { ...body, types, cursor: body.next_cursor, pages: 1 };
	},
	Body,
};
