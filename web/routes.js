// Addresses within the page: #/tasks?status=failed.
import { state } from "./store.js";

/** A value with line ends is several of that name (no label has one). @param {string} path @param {Query} [query] */
export function href(path, query = {}) {
	const words = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) {
		if (value !== undefined && value !== null && value !== "") for (const one of String(value).split("\n")) words.append(name, one);
	}
	const tail = words.toString();
	return "#" + path + (tail && "?" + tail);
}

/** A path of one or more parts, each encoded. @param {...(string|number)} parts */
export const path = (...parts) => "/" + parts.map((part) => encodeURIComponent(part)).join("/");

/** @param {string} hash */
export function parse(hash) {
	const [where, tail = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
	/** @type {Words} */
	const query = {};
	for (const [name, value] of new URLSearchParams(tail)) query[name] = name in query ? query[name] + "\n" + value : value;
	return { path: where || "/", query };
}

/** @param {string} where @param {Query} [query] */
export function go(where, query) {
	location.hash = href(where, query);
}

/** Goes to this place with another query. @param {Query} query */
export const setQuery = (query) => go(state.place.path, query);

/** Changes a part of the query as the address has it now, without a step in the history; nothing if one is on the way to another place. @param {Query} part */
export function changeQuery(part) {
	const { path, query } = parse(location.hash);
	if (path === state.place.path) location.replace(href(path, { ...query, ...part }));
}

/** The params of path if it fits route ("/types/:name"), else null. @param {string} route @param {string} where */
export function match(route, where) {
	const names = route.split("/"), parts = where.split("/");
	if (names.length !== parts.length) return null;
	/** @type {Words} */
	const params = {};
	for (let i = 0; i < names.length; i++) {
		if (names[i].startsWith(":")) {
			try {
				params[names[i].slice(1)] = decodeURIComponent(parts[i]);
			} catch {
				return null;
			}
		} else if (names[i] !== parts[i]) return null;
	}
	return params;
}
