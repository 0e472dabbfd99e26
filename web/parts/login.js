// The login lies over the page; what is behind it stays, and goes on after it.
import { logIn } from "../api.js";
import { Component, html, Note, Refused } from "./bits.js";

/** @extends {Component<{}, {error: any, busy: boolean}>} */
export class Login extends Component {
	state = { error: /** @type {any} */ (null), busy: false };
	componentDidMount() {
		this.element?.showModal();
	}
	/** @param {SubmitEvent} event */
	async enter(event) {
		event.preventDefault();
		const key = String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("key")).trim();
		this.setState({ busy: true, error: null });
		try {
			await logIn(key);
		} catch (error) {
			this.setState({ busy: false, error });
		}
	}
	render() {
		const { error, busy } = this.state;
		return html`<dialog ref=${(element) => void (this.element = element)} class="login" aria-labelledby="login-title" onCancel=${(event) => event.preventDefault()}>
			<form class="stack" onSubmit=${(event) => this.enter(event)}>
				<h2 id="login-title">Log in to claimq</h2>
				<p class="soft">With an API key of this cluster. It is not kept in this browser.</p>
				${location.protocol === "http:" && !/^(localhost|127\.|\[::1\]|.*\.localhost$)/.test(location.hostname) && html`<${Note} tone="warn">This connection is not encrypted: the key can be read on its way.<//>`}
				<input class="hide" name="username" autocomplete="username" value="claimq" readonly tabindex="-1" aria-hidden="true" />
				<div class="field"><label for="key">API key</label><input id="key" name="key" type="password" autocomplete="current-password" required autofocus aria-invalid=${!!error || undefined} aria-describedby=${error ? "login-error" : undefined} /></div>
				${error && html`<${Refused} error=${error} id="login-error" />`}
				<div class="row end"><button class="button primary" aria-busy=${busy}>Log in</button></div>
			</form>
		</dialog>`;
	}
}
