// What the whole page knows, in one place, and what this browser keeps of it.
/** @import { Dialog, InSight, Me, Members, Settings, Toast } from "./types/model" */

/** A view of which nothing has come yet. @type {InSight} */
export const unseen = { data: null, at: 0, index: 0, node: "", every: 0, error: null, waiting: 0, turning: false };

/** @type {Settings} */
const defaults = { theme: "system", times: "relative", refresh: "auto", keys: true, params: true };

const leadsMax = 10;

/** The settings stored in this browser. @returns {Settings} */
function kept() {
	try {
		return { ...defaults, ...JSON.parse(localStorage.getItem("claimq.settings") ?? "{}") };
	} catch {
		return defaults;
	}
}

export const state = {
	/** @type {{path: string, query: Words}} */
	place: { path: "/", query: {} },
	/** @type {any} what GET /ui/session told */
	session: null,
	/** @type {Me|null} */
	me: null,
	login: false,
	/** @type {null|{since: number, text: string}} */
	noLeader: null,
	/** @type {null|{since: number}} */
	unreachable: null,
	newer: false,
	/** @type {string} why this node is not ready, "" if it is */
	unready: "",
	/** The number of notable events. */
	notable: 0,
	/** @type {string} why the refresh is slower than usual */
	slow: "",
	/** @type {{node_id: string, http_addr: string}[]} */
	members: [],
	/** @type {{leader: string, term: number, at: string}[]} who led while this tab looked, the last first */
	leads: [],
	/** @type {Toast[]} */
	toasts: [],
	/** @type {Dialog[]} */
	dialogs: [],
	view: unseen,
	live: true,
	settings: kept(),
};

/** @type {Set<() => void>} */
const watchers = new Set();
let told = false;

/** Changes the state; who watches is told once, after all changes of this turn. @param {Partial<typeof state>} change */
export function set(change) {
	Object.assign(state, change);
	if (told) return;
	told = true;
	queueMicrotask(() => {
		told = false;
		for (const watcher of watchers) watcher();
	});
}

/** @param {() => void} watcher */
export function watch(watcher) {
	watchers.add(watcher);
	return () => watchers.delete(watcher);
}

/** @param {Partial<Settings>} change */
export function setSettings(change) {
	set({ settings: { ...state.settings, ...change } });
	try {
		localStorage.setItem("claimq.settings", JSON.stringify(state.settings));
	} catch {
		// A browser that keeps nothing keeps the settings until the page is closed.
	}
}

/** Keeps what was told of the members, and of who leads. @param {Members} cluster */
export function noteMembers({ nodes, leader, term }) {
	const leads = leader && state.leads[0]?.term !== term ? [{ leader, term, at: new Date().toISOString() }, ...state.leads].slice(0, leadsMax) : state.leads;
	set({ members: nodes, leads });
}

let ids = 0;
export const nextId = () => ++ids;
