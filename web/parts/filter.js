// A filter in words: "status:failed label:customer:7" becomes chips and the query of the address.
import { Button, Component, html } from "./bits.js";
import { read } from "../words.js";

/** @import { Filtering } from "../types/model" */

/** @extends {Component<Filtering, {line: string}>} */
export class Filter extends Component {
	state = { line: "" };
	render() {
		const { query, words, plain, onChange, label, other } = this.props, { line } = this.state;
		const chips = words.flatMap(({ word }) => (query[word] ? query[word].split("\n").map((value) => ({ word, value })) : []));
		const typed = line.slice(line.lastIndexOf(" ") + 1), before = line.slice(0, line.length - typed.length);
		const offered = words.flatMap(({ word, values, hint }) => (values && typed.startsWith(word + ":") ? values.map((value) => ({ value: `${before}${word}:${value}`, hint })) : [{ value: `${before}${word}:`, hint }]));
		return html`<form class="filter" role="search" onSubmit=${(event) => {
			event.preventDefault();
			const { cursor, scan, ...rest } = query;
			onChange(read(line, words, rest, plain));
			this.setState({ line: "" });
		}}>
			<label class="hide" for="filter">${label}</label>
			<input id="filter" data-filter type="search" autocomplete="off" spellcheck=${false} list="filter-words" placeholder=${words.slice(0, 4).map(({ word }) => word + ":").join("  ") + `  …  or ${other}`} value=${line} onInput=${(event) => this.setState({ line: event.currentTarget.value })} />
			<datalist id="filter-words">${offered.map(({ value, hint }) => html`<option key=${value} value=${value}>${hint}</option>`)}</datalist>
			<button class="button">Filter</button>
		</form>
		${chips.length > 0 && html`<div class="chips">${chips.map(({ word, value }) => html`<span class="chip" key=${word + value}><span class="soft">${word}</span> ${value}<button type="button" aria-label=${`Remove ${word} ${value}`} onClick=${() => {
			const { cursor, scan, ...rest } = query, left = query[word].split("\n").filter((one) => one !== value);
			onChange({ ...rest, [word]: left.join("\n") });
		}}>✕</button></span>`)}<${Button} kind="quiet" onClick=${() => onChange({})}>Clear<//></div>`}`;
	}
}
