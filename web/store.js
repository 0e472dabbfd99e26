// What the whole page knows, in one place, and what this browser keeps of it.
/** @import { Dialog, Me, Settings, Toast } from "./types/model" */

/** @type {Settings} */
const defaults = { theme: "system", times: "relative", refresh: "auto", keys: true, params: true };

/** @param {string} name @param {any} otherwise */
function kept(name, otherwise) {
	try {
		return { ...otherwise, ...JSON.parse(localStorage.getItem(name) ?? "{}") };
	} catch {
		return { ...otherwise };
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
	/** @type {string} why the refresh is slower than usual */
	slow: "",
	/** @type {{node_id: string, http_addr: string}[]} */
	members: [],
	/** @type {Toast[]} */
	toasts: [],
	/** @type {Dialog[]} */
	dialogs: [],
	/** @type {{data: any, at: number, index: number, node: string, every: number, error: any, waiting: number, turning: boolean}} turning: what is shown is of the place before */
	view: { data: null, at: 0, index: 0, node: "", every: 0, error: null, waiting: 0, turning: false },
	live: true,
	/** @type {Settings} */
	settings: kept("claimq.settings", defaults),
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

let ids = 0;
export const nextId = () => ++ids;
