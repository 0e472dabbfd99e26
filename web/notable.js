// What is worth a look, counted until somebody looks at the trail.
import { stream } from "./api.js";
import { acts } from "./parts/events.js";
import { set, state, watch } from "./store.js";

const kinds = ["failed", "expired", "cancelled", ...acts];
/** More are not counted: the stream is closed then. */
export const notableMax = 99;
const againMS = 10000;

/** The position after which it counts, "": from now on. */
let last = "", busy = false;
let under = new AbortController();

/** Has a stream open exactly while the tab is seen, shows another view, and may count on. */
async function follow() {
	const { live, login, me, view: { index }, place, notable } = state;
	if (place.path === "/trail" && (notable || last)) {
		last = "";
		set({ notable: 0 });
	}
	const wanted = live && !document.hidden && !login && !!me && !me.task_types && index > 0 && place.path !== "/trail" && notable < notableMax;
	if (!wanted) under.abort();
	if (!wanted || busy) return;
	busy = true;
	under = new AbortController();
	const { signal } = under;
	try {
		await stream("/events", { event: kinds }, {
			signal, lastId: last,
			onEvent(event, id, name) {
				if (name === "error" || signal.aborted) throw event;
				if (id) last = id;
				if (event) set({ notable: Math.min(state.notable + 1, notableMax) });
			},
		});
	} catch (/** @type {any} */ error) {
		if (error?.code === "events_gone" || error?.code === "place_ahead") last = "";
	}
	if (!signal.aborted) await new Promise((later) => setTimeout(later, againMS));
	busy = false;
	follow();
}

watch(follow);
document.addEventListener("visibilitychange", follow);
