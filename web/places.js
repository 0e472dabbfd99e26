// Places of the trail: where its newest events are. A place is no index of the log.
/** @import { Event as EventOf } from "./types/model" */

/** The range of the first search, in entries; each further one covers four times as many. */
const firstLook = 1000;
const looks = 6, pagesOfLook = 4;

/** The place of an event in the trail. @param {Pick<EventOf, "index"|"sub">} event */
export const place = (event) => `${event.index}.${event.sub}`;

/** The entry of an event, or of a written position, as a number. @param {string} at */
const entryOf = (at) => Number(at.split(".")[0]);

/**
 * Where the trail was right behind the entry of the log with that index, "" if that cannot be told.
 * @param {typeof import("./api.js").get} get @param {number} index
 */
export async function placeOf(get, index) {
	const now = await get("/events", { limit: 1 }).catch(() => null);
	return now?.body.place ? String(entryOf(now.body.place) - (now.index - index)) : "";
}

/**
 * The newest events, oldest first, and where the trail was then. It is read from the front, so this looks back further and
 * further, and at last from the oldest that is kept: places jump where a backup was restored.
 * @param {typeof import("./api.js").get} get @param {Query} query @param {number} want
 */
export async function newest(get, query, want) {
	const { body: first } = await get("/events", { task_type: query.task_type, limit: 1 });
	const now = entryOf(first.place), oldest = entryOf(first.events[0] ? place(first.events[0]) : first.next);
	/** @type {EventOf[]} */
	let found = [];
	for (let look = 0, back = firstLook; look < looks; look++, back *= 4) {
		const whole = look === looks - 1 || now - back < oldest, from = String(Math.max(0, (whole ? oldest : now - back) - 1));
		const { events, ended } = await walk(get, query, from);
		if (ended || !found.length) found = events;
		if (found.length >= want || whole) break;
	}
	return { events: found.slice(-want), at: String(now) };
}

/** @param {typeof import("./api.js").get} get @param {Query} query @param {string} after */
async function walk(get, query, after) {
	/** @type {EventOf[]} */
	const events = [];
	for (let page = 0; page < pagesOfLook; page++) {
		try {
			const { body } = await get("/events", { ...query, after, limit: 1000 });
			events.push(...body.events);
			if (body.next === after) return { events, ended: true };
			after = body.next;
		} catch (error) {
			if (/** @type {any} */ (error).code !== "events_gone") throw error;
			after = String(Math.max(0, entryOf(/** @type {any} */ (error).body.oldest) - 1));
		}
	}
	return { events, ended: false };
}
