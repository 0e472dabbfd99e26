// The cluster: its members, whether they hold the same, what operators did.
import { Button, Card, Code, Component, Empty, Facts, html, Link, Note, Stat, Time, Tone } from "../parts/bits.js";
import { acts, EventList } from "../parts/events.js";
import { Table } from "../parts/table.js";
import { Act, act, confirm, done, form } from "../actions.js";
import { get, save, send } from "../api.js";
import { reloadNow } from "../live.js";
import { openDialog } from "../parts/dialog.js";
import { newest } from "../places.js";
import { noteMembers, state } from "../store.js";
import { bytes, dur, num, plural } from "../text.js";

/** @import { ClusterData, Column, Key, Node, View } from "../types/model" */

const eventsShown = 20;

/** @type {Column<Node & {behind: number}>[]} */
const columns = [
	{ key: "node_id", title: "Node", main: true },
	{ key: "well", title: "Well", cell: (node) => html`<${Tone} tone=${node.healthy ? "good" : "bad"}>${node.healthy ? "yes" : "no"}<//>` },
	{ key: "state", title: "State" },
	{ key: "suffrage", title: "Vote", cell: (node) => (node.suffrage === "voter" ? "voter" : "no vote") },
	{ key: "applied_index", title: "Applied", num: true },
	{ key: "behind", title: "Behind", num: true, hint: "entries of the log behind the furthest member" },
	{ key: "contact", title: "Last contact", num: true, cell: (node) => (node.last_contact_ms < 0 ? "never" : node.state === "leader" ? "" : dur(node.last_contact_ms)) },
	{ key: "clock", title: "Clock", num: true, hint: "ahead of most voters' clocks", cell: (node) => (node.clock_ahead_ms === null ? "" : `${node.clock_ahead_ms > 0 ? "+" : ""}${num(node.clock_ahead_ms)} ms`) },
	{ key: "memory", title: "Memory", num: true, hint: "what tasks take, in all", cell: ({ room }) => room && bytes(room.state_bytes) },
	{ key: "disk", title: "Disk free", num: true, cell: ({ room }) => room && bytes(room.disk_free_bytes) },
	{ key: "version", title: "Version" },
	{ key: "problem", title: "Problem", wide: true, cell: (node) => node.problem && html`<span class="bad">${node.problem}</span>` },
	{ key: "acts", title: "Actions", cell: (node) => html`<${Button} kind="quiet" aria-label=${`Change… ${node.node_id}`} onClick=${() => membership(node)}>Change…<//>` },
];

/** @param {string} what @param {string} text @param {any} body */
const change = (what, text, body) => act(text, "POST", "/cluster/" + what, body);

/** What can be done to a member. @param {Node} node */
function membership(node) {
	const { node_id: name } = node, body = { node_id: name }, voter = node.suffrage === "voter";
	/** A button that asks, then does it. @param {string} label @param {(done?: any) => void} close @param {Omit<Parameters<typeof confirm>[0], "yes">} question @param {string} what @param {string} text */
	const offer = (label, close, question, what, text) => html`<${Act} role="operator" kind=${question.danger ? "danger" : ""} onClick=${async () => {
		close();
		if (await confirm({ ...question, yes: label })) await change(what, text, body);
	}}>${label}<//>`;
	return openDialog((close) => html`
		<${Facts} of=${[["Peers reach it at", node.peer_addr], ["Clients reach it at", node.http_addr], ["Identity", node.uuid]]} />
		${node.problem && html`<${Note} tone="warn">${node.problem}<//>`}
		<div class="row end">
			${voter && node.state !== "leader" && offer("Make it lead", close, { title: `Hand the leadership to ${name}`, body: "Writes wait for a moment." }, "transfer", `${name} leads`)}
			${voter
				? offer("Take its vote away", close, { title: `Take the vote of ${name} away`, body: "It gets every entry, and counts for no majority until it is promoted." }, "demote", `${name} has no vote`)
				: offer("Give it a vote", close, { title: `Give ${name} a vote`, body: "It must have caught up." }, "promote", `${name} has a vote`)}
			${offer("Remove", close, { title: `Remove ${name}`, body: "It is out of the cluster and can never come back under its identity.", danger: true, word: name }, "remove", `${name} is removed`)}
		</div>`, { title: name });
}

const join = () =>
	form({
		title: "Add a member", yes: "Add it", intro: html`<p class="soft">The node runs already, with an empty data folder, and waits. It gets its vote once it has caught up.</p>`,
		fields: [{ name: "node_id", label: "Its name", required: true }, { name: "peer_addr", label: "Its peer address", required: true, placeholder: "10.0.0.4:7401" }, { name: "voter", label: "With a vote", type: "checkbox", value: true }],
		submit: (values) => change("join", `${values.node_id} is a member`, values),
	});

/** Raises the feature level, after a look at what it would be. */
async function raise() {
	const { body } = await send("POST", "/cluster/upgrade", { dry_run: true });
	const level = body.would_be;
	if (level === body.feature_level) return done(`The feature level stays ${level}: ${body.nodes.some((/** @type {any} */ node) => node.feature_level > level) ? "a member knows no more" : "all members know no more"}.`);
	if (await confirm({ title: `Raise the feature level to ${level}`, body: `It is ${body.feature_level}. No older version can take part from then on.`, yes: "Raise it", danger: true, word: String(level) })) await change("upgrade", `The feature level is ${level}`, {});
}

/** The hashes of the nodes' states, on request. @extends {Component<{}, {answer: any, at: number}>} */
class Hashes extends Component {
	state = { answer: /** @type {any} */ (null), at: 0 };
	render() {
		const { answer } = this.state;
		return html`<${Card} title="Do all nodes hold the same state?" tools=${html`<${Act} role="operator" onClick=${async () => this.setState({ answer: (await get("/cluster/hash")).body })}>Compare<//>`}>
			${!answer && html`<p class="soft">Every node hashes its state at one index of the log. It costs each a moment.</p>`}
			${answer && html`<div role="status"><p><${Tone} tone=${answer.agree ? "good" : "bad"}>${answer.agree ? "The same" : "They differ"}<//> at index ${num(answer.index)}</p>
				<ul class="list">${answer.nodes.map((/** @type {any} */ node) => html`<li key=${node.node_id}><b>${node.node_id}</b><span class="mono">${node.hash || "did not answer in time"}</span></li>`)}</ul></div>`}
		<//>`;
	}
}

/** @param {{data: ClusterData}} props */
function Body({ data: { cluster, events, keys, tokens } }) {
	const { nodes, leader, term, feature_level: level, restore } = cluster, { leads } = state, well = nodes.filter((node) => node.healthy).length, voters = nodes.filter((node) => node.suffrage === "voter").length, majority = Math.floor(voters / 2) + 1;
	const furthest = Math.max(...nodes.map((node) => node.applied_index));
	const rows = nodes.map((node) => ({ ...node, behind: furthest - node.applied_index }));
	return html`
		${restore && html`<${Note} tone="warn">A backup is being restored: ${num(restore.taken)} of ${num(restore.bytes)} bytes.<//>`}
		<div class="stats">
			<${Stat} label="Leader" value=${leader || "none"} tone=${leader ? "" : "bad"} sub=${`term ${num(term)}`} />
			<${Stat} label="Members well" value=${`${well} of ${nodes.length}`} tone=${well < nodes.length ? "bad" : ""} sub=${`${plural(voters, "voter")}: ${majority} make a majority`} />
			<${Stat} label="Can lose" value=${num(Math.max(0, well - majority))} sub="more members and go on" tone=${well > majority ? "" : "warn"} />
			<${Stat} label="Feature level" value=${num(level)} sub=${[...new Set(nodes.map((node) => node.version))].join(", ")} />
		</div>
		<${Card} title="Members" tools=${html`<${Act} role="operator" onClick=${join}>Add a member<//>`}>
			<${Table} caption="Members" rows=${rows} id="node_id" cols=${columns} />
			${nodes.length === 1 && html`<${Empty} title="One node alone"><p>If it is lost, so are all tasks. With three nodes, one may fail. Start another, then add it here:</p><${Code}>${"claimq server --id n2 --data-dir ./n2 --peer-addr HOST:7401 --http-addr HOST:7400"}<//><//>`}
		<//>
		<div class="grid">
			<${Hashes} />
			<${Card} title="Snapshots and backups"><p class="soft">Nodes write snapshots by themselves. A backup is the whole state at one index, as a file.</p>
				<div class="row"><${Act} role="operator" onClick=${() => save("/snapshots/latest", "claimq.backup")}>Save a backup<//><${Act} role="operator" onClick=${async () => done(`Snapshots as of index ${num((await send("POST", "/snapshots")).body.index)}`)}>Write snapshots now<//></div><//>
			<${Card} title="Versions"><p class="soft">Once all members run a newer version, its features wait for the level to be raised.</p><div class="row"><${Act} role="operator" onClick=${raise}>Raise the feature level…<//></div><//>
		</div>
		<${Card} title="Keys" tools=${html`<${Act} role="operator" onClick=${async () => {
			const { body } = await send("POST", "/reload");
			done(`${body.node_id} has ${plural(body.keys, "key")}`);
			await reloadNow();
		}}>Read them again<//>`}>${keys.length
			? html`<${Table} caption="Keys of this node" rows=${keys} id="name" cols=${keyColumns} sort="name" />`
			: html`<p class="soft">This node has no keys: it is open.</p>`}<//>
		${tokens.length > 0 && html`<${Card} title="Join tokens"><ul class="list">${tokens.map((token) => html`<li key=${token.id}><span class="mono">${token.id}</span><span class="grow">${num(token.used)} of ${num(token.uses)} used, ends <${Time} at=${token.expires_at} /></span>
			<${Act} role="operator" kind="danger" onClick=${async () => (await confirm({ title: "Revoke this token", body: "Nodes that joined with it stay members.", yes: "Revoke it", danger: true })) && change("tokens/revoke", "The token is revoked", { id: token.id })}>Revoke<//></li>`)}</ul><//>`}
		<${Card} title="Leader changes"><ul class="list">${leads.map((lead, i) => html`<li key=${lead.term}><b>${lead.leader}</b><span>term ${num(lead.term)}, ${leads[i + 1] ? "seen" : "led already"} <${Time} at=${lead.at} /></span></li>`)}</ul>
			<p class="soft">As this tab has seen it. Operators' actions are <${Link} to="/trail" query=${{ event: "leadership_transferred" }}>in the trail<//>.</p><//>
		<${Card} title="Operators' actions">${events.length ? html`<${EventList} events=${events} />` : html`<p class="soft">The trail keeps nothing.</p>`}<//>`;
}

/** @type {Column<Key>[]} */
const keyColumns = [
	{ key: "name", title: "Name", main: true, sort: true },
	{ key: "roles", title: "Roles", wide: true, cell: (key) => key.roles.join(", ") },
	{ key: "types", title: "Types", wide: true, cell: (key) => key.task_types.join(", ") || "all" },
	{ key: "rate", title: "A minute", num: true, cell: (key) => (key.rate_limit_per_minute ? num(key.rate_limit_per_minute) : "no bound") },
	{ key: "expires_at", title: "Ends", time: true },
	{ key: "last_used_at", title: "Last used here", time: true },
];

/** @type {View} */
export default {
	title: () => "Cluster",
	every: 5000,
	seldom: 15000,
	async load({ ask, get, data, fresh }) {
		const cluster = await ask("/cluster");
		noteMembers(cluster);
		if (fresh) return { ...data, cluster };
		const [{ events }, keys, tokens] = await Promise.all([
			newest(get, { event: acts }, eventsShown), ask("/keys").then(({ keys }) => keys), ask("/cluster/tokens").then(({ tokens }) => tokens),
		]);
		return { cluster, events: events.reverse(), keys, tokens };
	},
	Body,
};
