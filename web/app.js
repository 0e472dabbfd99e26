// The page begins here: the frame around the views, and where one goes.
import { html, render, Component } from "./parts/html.js";
import { loadSession, logOut, Refusal } from "./api.js";
import { amend, reloadNow, setLive, showWaiting, visit, wantsType } from "./live.js";
import { Act, dismiss, failed, has } from "./actions.js";
import { notableMax } from "./notable.js";
import { go, href, parse } from "./routes.js";
import { nextId, set, state, watch } from "./store.js";
import { Dialogs, openDialog } from "./parts/dialog.js";
import { Button, Link, Note, OfType, Refused, Since, Skeleton, Ticking } from "./parts/bits.js";
import { tableKey } from "./parts/table.js";
import { Login } from "./parts/login.js";
import { Settings } from "./parts/settings.js";
import { dur, num, plural } from "./text.js";
import { fetchView, find } from "./views.js";

/** @import { Entry, View } from "./types/model" */

/** Path, name and key (after g) of what the navigation shows, in its order. */
const nav = [
	["/", "Overview", "o"], ["/tasks", "Tasks", "t"], ["/types", "Types", "k"], ["/failures", "Failures", "f"], ["/workers", "Workers", "w"],
	["/schedules", "Schedules", "s"], ["/trail", "Trail", "e"], ["/cluster", "Cluster", "c"],
];

/** Whether this person has something of a view. @param {Entry} entry */
const open = (entry) => (!entry.role || has(entry.role)) && !(entry.allTypes && state.me?.task_types);

/** The view shown, null before the first. @type {{path: string, view: View|null, params: Words}|null} */
let shown = null;

/** The scroll positions of this tab's history, and the current one. @type {Map<number, number>} */
const depths = new Map();
let here = 0;
/** The scroll position to restore once there is content. @type {number|null} */
let depth = null;

/** What had the focus last: when it is gone, the heading has it. @type {Element|null} */
let focused = null;
const heading = () => document.querySelector("h1");

/** Navigates to the address. The old view stays until the new one is loaded. */
async function follow() {
	const { hash } = location, found = find(parse(hash).path);
	if (!found) return show(null, {});
	const view = found.entry.view ?? (await fetchView(found.entry));
	if (hash === location.hash) show(view, found.params);
}

/** @param {View|null} view @param {Words} params */
function show(view, params) {
	const place = parse(location.hash), first = !shown, anew = place.path !== shown?.path;
	shown = { path: place.path, view, params };
	set({ place });
	const back = depths.get(history.state?.here);
	here = history.state?.here ?? nextId();
	history.replaceState({ here }, "");
	if (!view) return;
	visit(view, params, place.query, anew);
	if (!anew) return;
	scrollTo(0, 0);
	depth = back ?? null;
	if (!first) queueMicrotask(() => heading()?.focus({ preventScroll: true }));
}

/** Shows a bug of a view instead of the view; all else goes on. @extends {Component<{path: string, children: any}, {error: any}>} */
class Guarded extends Component {
	state = { error: null };
	/** @param {any} error */
	componentDidCatch(error) {
		console.error(error);
		this.setState({ error });
	}
	/** @param {{path: string}} before */
	componentDidUpdate(before) {
		if (before.path !== this.props.path && this.state.error) this.setState({ error: null });
	}
	render() {
		const error = /** @type {any} */ (this.state.error);
		if (!error) return this.props.children;
		return html`<${Note} tone="bad" role="alert"><p><b>This view has a bug; the others go on.</b></p><pre tabindex="0">${`${error.message}\n${error.stack}\n${location.hash}\nversion ${state.session?.version}`}</pre>
			<${Button} onClick=${() => this.setState({ error: null })}>Try again<//><//>`;
	}
}

/** Why a node is not ready: how far behind it is, or in its own words. @param {string} unready */
function lag(unready) {
	const [, applied, of] = /applied (\d+) of (\d+)/.exec(unready) ?? [];
	return of ? html`<b>This node is ${plural(Number(of) - Number(applied), "entry", "entries")} behind.</b> It passes on what it is asked; its charts are old.` : unready;
}

function Banners() {
	const { unreachable, noLeader, unready, newer, slow, session, view, members } = state;
	return html`<div class="banners">
		${unreachable && html`<${Note} tone="bad">This node has not answered for <${Since} at=${view.at || unreachable.since} />. ${view.at > 0 && "The data shown is from that time."}${members.length > 0 && html` Other members: ${members.filter((member) => member.http_addr && member.node_id !== session?.node_id).map((member) => html`<a key=${member.node_id} href=${`${location.protocol}//${member.http_addr.replace(/^https?:\/\//, "")}${location.pathname}${location.hash}`}>${member.node_id}</a> `)}`}<//>`}
		${noLeader && !unreachable && html`<${Note} tone="bad"><b>No leader since <${Since} at=${noLeader.since} />.</b> This is ${view.node || session?.node_id || "this node"}'s own state${view.index ? ` as of index ${num(view.index)}` : ""}. Nothing can be changed. ${noLeader.text}<//>`}
		${unready && !noLeader && !unreachable && html`<${Note} tone="warn">${lag(unready)}<//>`}
		${newer && html`<${Note} tone="info">A newer page is there. <${Button} onClick=${() => location.reload()}>Reload<//><//>`}
		${slow && html`<${Note} tone="warn">${slow}<//>`}
		${session?.open === "insecure" && html`<${Note} tone="bad">This cluster has no keys and listens beyond this machine: anyone who reaches it can do everything.<//>`}
	</div>`;
}

/** Data younger than this counts as new: a number that flickers with each refresh is useless. */
const newMS = 3500;

/** The age of the data, and the switch of its updates. */
function Freshness() {
	const { view, live } = state;
	const age = () => {
		const ms = Date.now() - view.at, late = view.every > 0 && live && ms > 3 * view.every + 1000;
		return html`<span class=${"small " + (late || view.error ? "bad" : "soft")}>${ms < newMS ? "now" : dur(Math.floor(ms / 1000) * 1000) + " old"}</span>`;
	};
	return html`<div class="freshness row">
		${view.at > 0 && html`<${Ticking} text=${age} />`}
		<${Button} kind="quiet live" aria-pressed=${live} title="Automatic updates (.)" onClick=${() => setLive(!live)}><span class="dot" aria-hidden="true"></span>${live ? "Live" : "Paused"}<//>
		<${Button} kind="quiet icon" aria-label="Refresh" title="Refresh (r)" onClick=${reloadNow}>↻<//>
	</div>`;
}

function Main() {
	const { place, view } = state;
	const wrong = view.error && (!shown || view.error.code !== "unreachable") && html`<${Refused} error=${view.error} tone=${view.error.status === 403 ? "info" : "bad"} />`;
	if (!shown) return html`${wrong}<${Skeleton} />`;
	if (!shown.view) return html`<h1 tabindex="-1">There is no such page</h1><p><${Link} to="/">Overview<//></p>`;
	const { view: { title, Body, tools }, params } = shown, unsaid = wantsType(shown.view, place.query), at = { params, query: place.query };
	const given = { ...at, data: view.data, reload: reloadNow, amend };
	return html`
		<header class="title">
			<div class="grow"><h1 tabindex="-1">${title(at)}</h1></div>
			${tools && view.data && !unsaid && html`<div class="row">${tools(given)}</div>`}
			<${Freshness} />
		</header>
		${wrong}
		${view.waiting > 0 && html`<p class="waiting"><${Button} onClick=${showWaiting}>${plural(view.waiting, "change")} waiting<//></p>`}
		<${Guarded} path=${place.path}>${unsaid ? html`<${OfType} query=${place.query} />` : view.data ? html`<div class="view" aria-busy=${view.turning}><${Body} key=${place.path} ...${given} /></div>` : !view.error && html`<${Skeleton} />`}<//>`;
}

/** @extends {Component<{}, {menu?: boolean}>} */
class Page extends Component {
	componentDidMount() {
		watch(() => this.setState({}));
		addEventListener("hashchange", () => this.setState({ menu: false }));
	}
	componentDidUpdate() {
		const title = (state.notable ? `(${state.notable}) ` : "") + (shown?.view ? shown.view.title({ params: shown.params, query: state.place.query }) + " · " : "") + "claimq";
		if (document.title !== title) document.title = title;
		if (focused && !focused.isConnected && document.activeElement === document.body) heading()?.focus({ preventScroll: true });
		if (depth === null || !state.view.data) return;
		scrollTo(0, depth);
		depth = null;
	}
	render() {
		const { place, me, session, toasts, login, view, notable } = state, { menu } = this.state;
		const badge = notable > 0 && html` <span class="badge">${num(notable)}${notable >= notableMax && "+"}<span class="hide"> notable</span></span>`;
		document.documentElement.dataset.theme = state.settings.theme;
		return html`
			<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), heading()?.focus())}>To the content</a>
			<div class="frame">
				<header class="side">
					<a class="brand" href=${href("/")}><span class="mark" aria-hidden="true">✓</span>claimq</a>
					<${Button} kind="quiet menu-button" aria-expanded=${!!menu} aria-controls="nav" onClick=${() => this.setState({ menu: !menu })}>Menu ${badge}<//>
					<nav id="nav" aria-label="Views" class=${menu ? "open" : ""}>
						${nav.filter(([path]) => { const found = find(path); return found && open(found.entry); }).map(([path, name]) => {
							const current = path === "/" ? place.path === "/" : place.path === path || place.path.startsWith(path + "/");
							return html`<a key=${path} href=${href(path)} aria-current=${current ? "page" : undefined}>${name}${path === "/trail" && badge}</a>`;
						})}
					</nav>
					${has("producer") && html`<${Act} role="producer" kind=${"submit" + (menu ? " open" : "")} onClick=${submit}>Submit a task<//>`}
					<div id="foot" class=${menu ? "open" : ""}>
						<${Button} kind="quiet" onClick=${settings}>Settings<//>
						<${Button} kind="quiet" onClick=${help}>Help <kbd>?</kbd><//>
						<p class="small soft">${session?.login && me ? html`${me.name}<br />${me.roles.join(", ")}<br /><button type="button" class="link" onClick=${logOut}>Log out</button>` : session?.open ? "No keys: everybody may do everything" : ""}</p>
						<p class="small soft">${session && html`${view.node || session.node_id}, version ${session.version}${view.index > 0 && html`<br />as of index ${num(view.index)}`}`}</p>
					</div>
				</header>
				<div class="content"><main id="main"><${Banners} /><${Main} /></main></div>
			</div>
			<div class="toasts" role="status" aria-live="polite">${toasts.map((toast) => html`<div key=${toast.id} class="toast" data-tone=${toast.tone}><span>${toast.text}${toast.href && html` <a href=${toast.href}>${toast.label}</a>`}</span><${Button} kind="quiet icon" aria-label="Close" onClick=${() => dismiss(toast.id)}>✕<//></div>`)}</div>
			<${Dialogs} />
			${login && html`<${Login} />`}`;
	}
}

const settings = () => openDialog(() => html`<${Settings} />`, { title: "Settings of this browser" });

/** Asks for a task; the form comes with its first use. */
const submit = async () => (await import("./views/submit.js")).submit();

const help = () =>
	openDialog(() => html`<p class="soft">Single keys, outside of fields. They can be switched off in the settings.</p>
		<dl class="keys">${[["/", "filter"], ["g then a letter", nav.map(([, name, key]) => `${key} ${name.toLowerCase()}`).join(", ")], ["j k", "next, previous row"], ["Enter", "open the row"], ["x, Shift+x", "tick the row, and all up to it"], ["r", "refresh"], [".", "updates on or off"], ["n", "submit a task"], ["?", "this help"], ["Esc", "close"]]
			.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`, { title: "Keys" });

/** What single keys do. @type {Record<string, () => void>} */
const keys = {
	"?": help,
	"/": () => /** @type {HTMLElement|null} */ (document.querySelector("main [data-filter]"))?.focus(),
	n: () => void submit().catch(failed),
	r: () => void reloadNow(),
	".": () => setLive(!state.live),
};

let afterG = 0;
addEventListener("keydown", (event) => {
	const at = /** @type {HTMLElement} */ (event.target);
	if (!state.settings.keys || event.ctrlKey || event.metaKey || event.altKey || state.dialogs.length || state.login || at.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
	const key = event.key, lower = key.toLowerCase(), to = Date.now() - afterG < 1500 && nav.find(([, , letter]) => letter === key);
	afterG = 0;
	if (to) go(to[0]);
	else if (key === "g") afterG = Date.now();
	else if ("jkx".includes(lower) && lower.length === 1) tableKey(lower, event.shiftKey);
	else if (keys[key]) keys[key]();
	else return;
	event.preventDefault();
});

history.scrollRestoration = "manual"; // a view is empty when the browser would do it
addEventListener("scroll", () => depth === null && depths.set(here, scrollY), { passive: true });
addEventListener("hashchange", follow);
addEventListener("focusin", ({ target }) => void (focused = /** @type {Element} */ (target)));
addEventListener("error", (event) => console.error(event.error));

const page = /** @type {HTMLElement} */ (document.getElementById("page"));
render(html`<${Page} />`, page);
loadSession()
	.catch((error) => set({ view: { ...state.view, error: error instanceof Refusal ? error : new Refusal(0, { error: String(error) }) } }))
	.finally(follow);
