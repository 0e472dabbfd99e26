// What this browser's person likes; kept in this browser alone.
import { html } from "./html.js";
import { setLive } from "../live.js";
import { setSettings, state } from "../store.js";

/** @param {{name: "theme"|"times"|"refresh", label: string, options: [any, string][], hint?: string}} props */
const Choice = ({ name, label, options, hint }) => html`<div class="field"><label for=${"s-" + name}>${label}</label>
	<select id=${"s-" + name} value=${String(state.settings[name])} onChange=${(event) => {
		const value = options[event.currentTarget.selectedIndex][0];
		setSettings({ [name]: value });
		if (name === "refresh") setLive(true);
	}}>${options.map(([value, text]) => html`<option key=${value} value=${String(value)}>${text}</option>`)}</select>
	${hint && html`<span class="small soft">${hint}</span>`}</div>`;

/** @param {{name: "keys"|"params", label: string}} props */
const Switch = ({ name, label }) => html`<label class="field check"><input type="checkbox" checked=${state.settings[name]} onChange=${() => setSettings({ [name]: !state.settings[name] })} /> ${label}</label>`;

export const Settings = () => html`<div class="stack">
	<${Choice} name="theme" label="Colours" options=${[["system", "As the system"], ["light", "Light"], ["dark", "Dark"]]} />
	<${Choice} name="times" label="Times" options=${[["relative", "Relative (3 min ago)"], ["local", "Absolute, here"], ["utc", "Absolute, UTC"]]} />
	<${Choice} name="refresh" label="Refresh" options=${[["auto", "As each view needs it (1 to 10 s)"], ...[1, 2, 5, 10, 30, 60].map((n) => [n, `Every ${n} s`])]} hint="A hidden tab does not refresh. The switch Live pauses refreshing." />
	<${Switch} name="keys" label="Single-key shortcuts" />
	<${Switch} name="params" label="Show params and results at once" />
</div>`;
