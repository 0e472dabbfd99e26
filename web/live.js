// The loop of a tab: it loads the visible view's data, and stops while the tab is hidden.
import { get, lookForLeader, Refusal } from "./api.js";
import { set, state, unseen, watch } from "./store.js";

/** @import { Loading, View } from "./types/model" */

/** @type {{view: View, params: Words, query: Words}|null} */
let place = null;
let turn = 0, held = 0, timer = 0, index = 0, node = "", seldomAt = 0, looking = false;
/** The wait between checks for a leader, and the interval of checks whether this node is ready. */
const lookMS = 2000, readyMS = 10000;
let readyAt = 0;
/** @type {AbortController} */
let under = new AbortController();
/** @type {{data: any}|null} */
let waiting = null;

/** @param {View} view */
const pace = (view) => {
	const every = typeof view.every === "function" ? view.every(state.view.data) : view.every;
	const { refresh } = state.settings;
	return (refresh === "auto" || !every ? every : refresh * 1000) * (state.slow ? 5 : 1);
};

function schedule() {
	clearTimeout(timer);
	if (!place || document.hidden || !state.live || state.login) return;
	const every = pace(place.view) || (state.view.error ? 5000 : 0);
	set({ view: { ...state.view, every } });
	if (every) timer = window.setTimeout(tick, every);
}

/** Shows another place. @param {View} view @param {Words} params @param {Words} query @param {boolean} anew whether it is another place, not the same with other filters */
export function visit(view, params, query, anew) {
	place = { view, params, query };
	waiting = null;
	if (anew) seldomAt = 0;
	set({ view: anew ? unseen : { ...state.view, turning: true } });
	return load(true);
}

const tick = () => load(false);

/** Whether somebody whose key is for some types has to choose one first. @param {View} view @param {Words} query */
export const wantsType = ({ typed }, query) => !!typed && !!state.me?.task_types && !query.type;

/** Loads because somebody asked for it. */
export async function reloadNow() {
	await lookForLeader();
	await load(true);
}

/** While the tab is visible it looks for a missing leader, independently of the view, because nothing can be changed without one. */
async function look() {
	if (!state.noLeader || looking || document.hidden) return;
	looking = true;
	await new Promise((later) => setTimeout(later, lookMS));
	if (!document.hidden) await lookForLeader();
	looking = false;
	look();
}
watch(look);

/** @param {boolean} anew whether what has come meanwhile may push what is shown */
async function load(anew) {
	if (!place || state.login || wantsType(place.view, place.query)) return;
	const mine = ++turn, { view, params, query } = place;
	under.abort();
	under = new AbortController();
	const { signal } = under;
	/** @type {typeof get} */
	const bound = async (path, words, options) => {
		const answer = await get(path, words, { signal, ...options });
		if (answer.index) ({ index, node } = answer);
		return answer;
	};
	/** @type {Loading["ask"]} */
	const ask = async (path, words) => (await bound(path, words)).body;
	const now = Date.now(), before = waiting?.data ?? state.view.data, fresh = !anew && !!before && now - seldomAt < (view.seldom ?? 0);
	if (anew || now - readyAt >= readyMS) {
		readyAt = now;
		get("^/readyz").then(() => "", ({ status, message }) => (status ? message : "")).then((unready) => unready !== state.unready && set({ unready }));
	}
	try {
		const data = await view.load({ params, query, get: bound, ask, signal, data: before, anew, fresh, amend: (part) => mine === turn && amend(part) });
		if (mine === turn) {
			if (!fresh) seldomAt = now;
			arrive(data);
		}
	} catch (error) {
		if (mine !== turn || signal.aborted) return;
		set({ view: { ...state.view, error, turning: false } });
		if (!(error instanceof Refusal)) console.error(error);
	}
	if (mine === turn) schedule();
}

/** @param {any} data */
function arrive(data) {
	const view = { ...state.view, at: Date.now(), index, node, error: null, turning: false };
	if (state.view.data && (held || selecting())) {
		waiting = { data };
		set({ view: { ...view, waiting: changes(state.view.data, data) } });
	} else {
		waiting = null;
		set({ view: { ...view, data, waiting: 0 } });
	}
}

/** Shows what waits. */
export function showWaiting() {
	if (waiting) set({ view: { ...state.view, data: waiting.data, waiting: 0 } });
	waiting = null;
}

/** While a row is held, the table below it does not change. */
export const hold = () => void held++;
export function release() {
	if (--held === 0 && !selecting()) showWaiting();
}

/** Whether somebody has text of the view selected. */
function selecting() {
	const selection = getSelection();
	return !!selection && !selection.isCollapsed && !!document.querySelector("main")?.contains(selection.anchorNode);
}

/** How many rows two answers differ in. @param {any} before @param {any} after */
function changes(before, after) {
	/** @param {any} data */
	const rows = (data) => Object.values(data).flat().filter((row) => row instanceof Object).map((row) => JSON.stringify(row));
	const known = new Set(rows(before));
	return rows(after).filter((row) => !known.has(row)).length;
}

/** Takes the view's data as changed by hand (a list that got a page more). @param {any} data */
export const amend = (data) => set({ view: { ...state.view, data, turning: false } });

export function setLive(/** @type {boolean} */ live) {
	set({ live });
	if (live) tick();
	else clearTimeout(timer);
}

let loggingIn = false;
watch(() => {
	if (loggingIn && !state.login) load(true); // the key may have other rights
	loggingIn = state.login;
});
document.addEventListener("visibilitychange", () => {
	clearTimeout(timer);
	look();
	if (document.hidden) under.abort();
	else if (state.live) tick();
});
document.addEventListener("selectionchange", () => {
	if (waiting && !held && !selecting()) showWaiting();
});
