// A table that patches its rows in place: sorted, ticked, as cards on small screens.
import { Button, Component, html, Nil, Num, Time } from "./bits.js";
import { path } from "../routes.js";
import { num } from "../text.js";

/** @import { Column, TableProps } from "../types/model" */

/** @param {Column<any>} col @param {any} row */
function shown({ key, cell, num, time }, row) {
	const value = cell ? cell(row) : row[key];
	if (time) return html`<${Time} at=${value} />`;
	return value === undefined || value === null || value === "" ? html`<${Nil} />` : num && !cell ? html`<${Num} n=${value} />` : value;
}

/** @extends {Component<TableProps, {sort: string, more: number}>} */
export class Table extends Component {
	/** @param {TableProps} props */
	constructor(props) {
		super(props);
		this.state = { sort: props.sort ?? "", more: 0 };
		/** @type {(string|number)[]} the order that stays while somebody points at it */
		this.order = [];
		this.by = ""; // the sort that it is of
		this.inside = false;
		/** @type {string|number|null} */
		this.last = null;
	}

	/** @param {string} by */
	sorted(by) {
		const { rows, cols, id, onSort } = this.props, key = by.replace("-", ""), sort = cols.find((col) => col.key === key)?.sort;
		if (!sort) return rows;
		if (this.inside && this.by === by) {
			const place = new Map(this.order.map((one, i) => [one, i]));
			return [...rows].sort((a, b) => (place.get(a[id]) ?? Infinity) - (place.get(b[id]) ?? Infinity) || 0);
		}
		if (onSort) return rows;
		const sign = by.startsWith("-") ? -1 : 1, value = sort === true ? (/** @type {any} */ row) => row[key] ?? "" : sort;
		return [...rows].sort((a, b) => {
			const x = value(a), y = value(b);
			return x < y ? -sign : x > y ? sign : 0;
		});
	}

	/** @param {Column<any>} col */
	sortBy(col) {
		const { sort } = this.state, first = col.num ? "-" + col.key : col.key, second = col.num ? col.key : "-" + col.key, { onSort } = this.props;
		if (onSort) onSort(col.key);
		else this.setState({ sort: sort === first ? second : first });
	}

	/** @param {string|number} one @param {boolean} range */
	pick(one, range) {
		const { picked = new Set(), onPick } = this.props, next = new Set(picked), on = !picked.has(one);
		const from = range && this.last !== null ? this.order.indexOf(this.last) : -1, to = this.order.indexOf(one);
		for (const id of from < 0 ? [one] : this.order.slice(Math.min(from, to), Math.max(from, to) + 1)) on ? next.add(id) : next.delete(id);
		this.last = one;
		onPick?.(next);
	}

	render() {
		const { caption, cols, id, to, empty, picked, onPick, gone, limit = 200, onSort, onMore } = this.props, sort = onSort ? (this.props.sort ?? "") : this.state.sort;
		const sorted = this.sorted(sort);
		this.order = sorted.map((row) => row[id]);
		this.by = sort;
		if (!sorted.length && empty) return empty;
		const rows = onSort ? sorted : sorted.slice(0, limit + this.state.more), all = rows.every((row) => picked?.has(row[id])), left = (this.props.all ?? sorted.length) - rows.length;
		const stay = (/** @type {boolean} */ inside) => () => void (this.inside = inside);
		return html`<div class="scroll" onPointerEnter=${stay(true)} onPointerLeave=${stay(false)} onFocusIn=${stay(true)} onFocusOut=${stay(false)}>
			<table>
				<caption class="hide">${caption}</caption>
				<thead><tr>
					${onPick && html`<th scope="col" class="pick"><input type="checkbox" aria-label="Select all rows shown" checked=${rows.length > 0 && all} onChange=${() => onPick(all ? new Set() : new Set(rows.map((row) => row[id])))} /></th>`}
					${cols.map((col) => {
						const current = sort.replace("-", "") === col.key;
						return html`<th key=${col.key} scope="col" title=${col.hint} class=${col.num ? "num" : ""} aria-sort=${current ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}>
							${col.sort && sort ? html`<button type="button" onClick=${() => this.sortBy(col)}>${col.title}<span class="order" aria-hidden="true">${current ? (sort.startsWith("-") ? "↓" : "↑") : ""}</span></button>` : col.title}
						</th>`;
					})}
				</tr></thead>
				<tbody>
					${rows.map((row) => {
						const one = row[id];
						return html`<tr key=${one} class=${gone?.has(one) ? "gone" : ""} aria-selected=${onPick ? !!picked?.has(one) : undefined}>
							${onPick && html`<td class="pick"><input type="checkbox" aria-label=${`Select ${one}`} checked=${picked?.has(one)} onClick=${(event) => this.pick(one, event.shiftKey)} /></td>`}
							${cols.map((col) => {
								const cell = shown(col, row), name = (col.num ? "num " : "") + (col.wide ? "wide " : "") + (col.main ? "main" : "");
								return col.main
									? html`<th key=${col.key} scope="row" class=${name}>${to ? html`<a data-row href=${"#" + to + path(one)}>${cell}</a>` : cell}</th>`
									: html`<td key=${col.key} class=${name} data-label=${col.title}><span>${cell}</span></td>`;
							})}
						</tr>`;
					})}
				</tbody>
			</table>
			${left > 0 && html`<p class="row more"><span class="soft">${num(rows.length)} of ${num(rows.length + left)} rows</span>${(!onSort || onMore) && html`<${Button} onClick=${onMore ?? (() => this.setState({ more: this.state.more + limit }))}>Show ${num(Math.min(limit, left))} more<//>`}</p>`}
		</div>`;
	}
}

/** The keys of tables: j and k move, x ticks. @param {string} key @param {boolean} shift */
export function tableKey(key, shift) {
	const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("main [data-row]")]);
	const at = links.findIndex((link) => link === document.activeElement);
	if (key === "j" || key === "k") links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + (key === "j" ? 1 : -1)))]?.focus();
	else links[at]?.closest("tr")?.querySelector(".pick input")?.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: shift }));
}
