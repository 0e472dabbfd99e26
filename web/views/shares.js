// The shares of a type with the most pending tasks, and their settings.
import { Age, Card, Empty, html, Link, Tone } from "../parts/bits.js";
import { Table } from "../parts/table.js";
import { Act, act, form } from "../actions.js";
import { path } from "../routes.js";
import { unfit } from "../submitbody.js";
import { num, plural, short } from "../text.js";

/** @import { Column, Share } from "../types/model" */

/** The number of shares shown. */
export const sharesShown = 20;

/** The weight of a share that sets none. */
const usual = 100;

const states = { open: "", paused: "paused", limited: "at its limit", rate_limited: "at its rate" };

/** The settings of a share in words. @param {Share} share */
const words = ({ weight, max_claimed: most, rate_limit: rate }) => [weight !== usual && `weight ${num(weight)}`, most !== null && `at most ${num(most)}`, rate !== null && `${short(rate)}/s`].filter(Boolean).join(", ");

/** Replaces the settings of a share. @param {string} text @param {string} type @param {string} key @param {Partial<Share>} settings */
const put = (text, type, key, { paused, max_claimed, weight, rate_limit }) => act(text, "PUT", path("types", type, "shares", key), { paused, max_claimed, weight, rate_limit });

/** The numbers of a share: name, label, hint. */
const numbers = [
	["max_claimed", "At most claimed", "At one time; empty: as the type says."],
	["rate_limit", "Claims a second", "Empty: as the type says."],
	["weight", "Weight", "How many turns it gets in a fair type. Empty: 100."],
];

/** Asks for the settings of a share; without one, of which. @param {string} type @param {Share} [share] */
const edit = (type, share) =>
	form({
		title: share ? `Settings of ${share.share_key}` : `Settings of a share of ${type}`, yes: "Save",
		fields: [
			...(share ? [] : [{ name: "share_key", label: "Share key", hint: "It need not have tasks. What it has set is replaced.", required: true }]),
			...numbers.map(([name, label, hint]) => ({ name, label, hint, value: String((name === "weight" && share?.weight === usual ? null : share?.[/** @type {"weight"} */ (name)]) ?? "") })),
			{ name: "paused", label: "Paused: no claims, except by id", type: "checkbox", value: !!share?.paused },
		],
		submit: async (values) => {
			const key = share?.share_key ?? values.share_key, settings = Object.fromEntries(numbers.map(([name]) => [name, values[name].trim() ? Number(values[name]) : null]));
			const wrong = numbers.find(([name]) => Number.isNaN(settings[name]));
			if (wrong) throw unfit(wrong[0], `Invalid ${wrong[1].toLowerCase()}: it must be a number`);
			await put(`Settings of ${key} changed`, type, key, { ...settings, paused: values.paused });
		},
	});

/** @param {string} type @returns {Column<Share>[]} */
const columns = (type) => [
	{ key: "share_key", title: "Share key", main: true, cell: ({ share_key: key }) => html`<${Link} data-row to="/tasks" query=${{ type, share: key }}>${key}<//>` },
	{ key: "pending", title: "Pending", num: true },
	{ key: "claimed", title: "Claimed", num: true },
	{ key: "oldest", title: "Oldest wait", num: true, cell: ({ pending, oldest_wait_ms: ms }) => html`<${Age} ms=${pending ? ms : null} units=${1} />` },
	{ key: "state", title: "Held back", cell: ({ state }) => states[state] && html`<${Tone} tone="warn">${states[state]}<//>` },
	{ key: "settings", title: "Settings", wide: true, cell: words },
	{
		key: "acts", title: "Actions", cell: (share) => html`<span class="row">
			<${Act} role="operator" onClick=${() => put(share.paused ? `${share.share_key} goes on` : `${share.share_key} is paused`, type, share.share_key, { ...share, paused: !share.paused })}>${share.paused ? "Resume" : "Pause"}<span class="hide"> ${share.share_key}</span><//>
			<${Act} role="operator" onClick=${() => edit(type, share)}>Change<span class="hide"> ${share.share_key}</span><//>
		</span>`,
	},
];

/** @param {{type: string, shares: Share[]}} props */
export const Shares = ({ type, shares }) => html`<${Card} title="Share keys" tools=${html`<${Act} role="operator" onClick=${() => edit(type)}>Change one…<//>`}>
	<${Table} caption="Share keys" rows=${shares} id="share_key" cols=${columns(type)} empty=${html`<${Empty} title="No share key has tasks or settings" />`} />
	${shares.length === sharesShown && html`<p class="small soft">The ${plural(sharesShown, "share key")} with the most pending tasks.</p>`}
<//>`;
