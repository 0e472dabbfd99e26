// Dialogs: native <dialog>, which keeps the focus inside and gives it back.
import { Button, Component, html, Note } from "./bits.js";
import { hold, release } from "../live.js";
import { nextId, set, state } from "../store.js";

/** @import { Dialog } from "../types/model" */

/** Opens a dialog; resolves with what close was given, undefined if it was left.
 * @param {(close: (value?: any) => void) => any} body @param {{title: string, wide?: boolean}} options @returns {Promise<any>} */
export function openDialog(body, { title, wide }) {
	return new Promise((done) => set({ dialogs: [...state.dialogs, { id: nextId(), title, wide, body, done }] }));
}

/** @param {Dialog} dialog @param {any} value */
function close(dialog, value) {
	set({ dialogs: state.dialogs.filter((other) => other !== dialog) });
	dialog.done(value);
}

/** @extends {Component<{dialog: Dialog}>} */
class Frame extends Component {
	componentDidMount() {
		hold();
		this.element?.showModal();
	}
	componentWillUnmount() {
		release();
		this.element?.close(); // gives the focus back
	}
	render() {
		const { dialog } = this.props, leave = () => close(dialog, undefined);
		return html`<dialog ref=${(element) => void (this.element = element)} class=${dialog.wide ? "wide" : ""} aria-labelledby=${"dialog" + dialog.id} onCancel=${(event) => (event.preventDefault(), leave())}>
			<header class="card-head"><h2 id=${"dialog" + dialog.id}>${dialog.title}</h2><${Button} kind="quiet icon" aria-label="Close" onClick=${leave}>✕<//></header>
			${state.noLeader && html`<${Note} tone="bad">There is no leader: nothing can be changed until there is one. What you typed stays.<//>`}
			<div class="dialog-body">${dialog.body((value) => close(dialog, value))}</div>
		</dialog>`;
	}
}

export const Dialogs = () => state.dialogs.map((dialog) => html`<${Frame} key=${dialog.id} dialog=${dialog} />`);
