// Params and results as the bytes they came in.
import { Button, Card, Component, Copy, html } from "./bits.js";
import { download } from "../api.js";
import { indent } from "../raw.js";
import { bytes } from "../text.js";

/** @import { PayloadProps } from "../types/model" */

const shownAtOnce = 4096;

/** @param {string} base64 */
const decoded = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

/** @param {Uint8Array} data */
const hex = (data) =>
	Array.from({ length: Math.ceil(Math.min(data.length, shownAtOnce) / 16) }, (_, i) => {
		const row = data.subarray(i * 16, i * 16 + 16);
		return (i * 16).toString(16).padStart(6, "0") + "  " + Array.from(row, (b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48) + "  " + Array.from(row, (b) => (b > 31 && b < 127 ? String.fromCharCode(b) : "·")).join("");
	}).join("\n");

/** A card with the bytes of something. @extends {Component<PayloadProps, {open?: boolean, asIs?: boolean}>} */
export class Payload extends Component {
	render() {
		const { title, raw = "", base64, name, hidden } = this.props, { asIs } = this.state;
		const data = base64 ? decoded(base64) : undefined, size = data ? data.length : new Blob([raw]).size;
		const open = this.state.open ?? (size <= shownAtOnce && !hidden);
		const tools = html`<span class="small soft">${data ? "binary, " : ""}${bytes(size)}</span>
			${!data && open && html`<${Button} kind="quiet" aria-pressed=${!!asIs} onClick=${() => this.setState({ asIs: !asIs })}>As sent<//>`}
			${!data && html`<${Copy} text=${raw} />`}
			<${Button} kind="quiet" onClick=${() => download(new Blob([/** @type {BlobPart} */ (data ?? raw)], { type: data ? "application/octet-stream" : "application/json" }), name + (data ? ".bin" : ".json"))}>Download<//>
			<${Button} kind="quiet" aria-expanded=${open} onClick=${() => this.setState({ open: !open })}>${open ? "Hide" : "Show"}<//>`;
		return html`<${Card} class="payload" title=${title} tools=${tools}>${open && html`<pre tabindex="0">${data ? hex(data) + (data.length > shownAtOnce ? "\n…" : "") : asIs ? raw : indent(raw)}</pre>`}<//>`;
	}
}
