// Calls of the API: errors, login, no leader, and how often the key may ask.
import { set, state } from "./store.js";

/** @import { Answer, Following } from "./types/model" */

/** A failed call. Without an answer: status 0, code "unreachable". */
export class Refusal extends Error {
	/** @param {number} status @param {any} body @param {number} [retryAfter] */
	constructor(status, body, retryAfter = 1) {
		super(body?.error ?? `Status ${status}`);
		this.name = "Refusal";
		this.status = status;
		/** @type {string} */
		this.code = body?.code ?? "";
		/** @type {string} */
		this.advice = body?.message ?? "";
		this.body = body ?? {};
		this.retryAfter = retryAfter;
	}
}

/** How long an answer may take: a node waits 10 s for a read and 25 s for an act on many. */
const readWait = 15000, changeWait = 40000;
const secretName = "claimq.n";
const secret = () => localStorage.getItem(secretName) ?? "";

/** ^/readyz is outside the API, /tasks in it; both are below the page's prefix. @param {string} path @param {Query} query */
function address(path, query) {
	const words = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) {
		for (const one of Array.isArray(value) ? value : [value]) if ((one ?? "") !== "") words.append(name, String(one));
	}
	const tail = words.toString();
	return (path.startsWith("^") ? ".." + path.slice(1) : "../api" + path) + (tail && "?" + tail);
}

/** @type {Promise<void>|null} */
let entering = null;
/** @type {() => void} */
let entered = () => {};

addEventListener("storage", (event) => event.key === secretName && event.newValue && loadSession().then(entered)); // logged in by another tab

/** Shows the login; who waits goes on after it. */
function login() {
	entering ??= /** @type {Promise<void>} */ (new Promise((resolve) => (entered = resolve))).then(() => void (entering = null));
	set({ login: true });
	return entering;
}

/** @param {string} method @param {string} path @param {Query} query @param {{body?: any, signal?: AbortSignal, headers?: Words}} options */
async function fetched(method, path, query, { body, signal, headers } = {}) {
	/** @type {Response} */
	let response;
	const patience = headers?.Accept ? [] : [AbortSignal.timeout(method === "GET" ? readWait : changeWait)];
	try {
		response = await fetch(address(path, query), {
			method, signal: AbortSignal.any([...(signal ? [signal] : []), ...patience]), cache: "no-store", credentials: "same-origin",
			headers: { "X-Claimq-Page": secret() || "0", ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
			body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
		});
	} catch (error) {
		if (signal?.aborted) throw error;
		set({ unreachable: state.unreachable ?? { since: Date.now() } });
		throw new Refusal(0, method === "GET" ? { error: "This node does not answer", code: "unreachable" } : { error: "No answer came", code: "outcome_unknown", path });
	}
	if (state.unreachable) set({ unreachable: null });
	notice(response.headers);
	return response;
}

/** What the headers of an answer tell of the page itself. @param {Headers} headers */
function notice(headers) {
	const hash = headers.get("X-Claimq-Page");
	if (hash && state.session?.page && hash !== state.session.page && !state.newer) set({ newer: true });
	const limit = Number(headers.get("RateLimit-Limit") ?? 0), left = Number(headers.get("RateLimit-Remaining") ?? Infinity);
	if (limit) pace(left < 20 ? `Your key has ${limit} requests a minute. The page asks less often; give the key more (rate_limit_per_minute).` : "");
}

/** @param {string} slow */
function pace(slow) {
	if (slow !== state.slow) set({ slow });
}

/** @param {Response} response @returns {Promise<Answer>} */
async function answer(response) {
	const text = await response.text();
	let body = null;
	try {
		body = JSON.parse(text);
	} catch {
		// /readyz of a proxy, or not JSON: the status suffices.
	}
	if (!response.ok) throw new Refusal(response.status, body ?? { error: text.slice(0, 500) || response.statusText }, Number(response.headers.get("Retry-After") ?? 1));
	return { body, text, status: response.status, index: Number(response.headers.get("X-Claimq-Index") ?? 0), node: response.headers.get("X-Claimq-Node") ?? "" };
}

/** @param {string} method @param {string} path @param {Query} query @param {{body?: any, signal?: AbortSignal}} options @returns {Promise<Answer>} */
async function call(method, path, query, options) {
	for (;;) {
		if (state.login && method === "GET" && !path.startsWith("^")) await login();
		try {
			return await answer(await fetched(method, path, query, options));
		} catch (error) {
			if (!(error instanceof Refusal)) throw error;
			if (error.status === 401 && !path.startsWith("^/ui/")) {
				const entered = login();
				if (method === "GET") {
					await entered;
					continue;
				} // what changes something is not done later, perhaps with another's key
			}
			if (error.status === 429) {
				pace(error.message + ". The page asks less often.");
				if (method === "GET") {
					await new Promise((later) => setTimeout(later, error.retryAfter * 1000));
					continue;
				}
			}
			if (error.code === "no_leader" && !path.startsWith("^") && !state.noLeader) set({ noLeader: { since: Date.now(), text: error.message } }); // not /readyz: a node that is behind says so too
			throw error;
		}
	}
}

/** Reads. Without a leader it answers with what this node has. @param {string} path @param {Query} [query] @param {{signal?: AbortSignal}} [options] */
export async function get(path, query = {}, options = {}) {
	const stale = () => call("GET", path, { ...query, consistency: "stale" }, options);
	if (path.startsWith("^")) return call("GET", path, query, options);
	if (state.noLeader) return stale();
	try {
		return await call("GET", path, query, options);
	} catch (error) {
		if (error instanceof Refusal && error.code === "no_leader") return stale();
		throw error;
	}
}

/** Changes something. @param {string} method @param {string} path @param {any} [body] @param {{signal?: AbortSignal}} [options] */
export const send = (method, path, body, options = {}) => call(method, path, {}, { body: body ?? {}, ...options });

/** Saves an answer as a file. @param {string} path @param {string} otherwise the name of the file, if the answer has none */
export async function save(path, otherwise) {
	const response = await fetched("GET", path, {}, { headers: { Accept: "application/octet-stream" } });
	if (!response.ok) return void (await answer(response));
	download(await response.blob(), /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? otherwise);
}

/** Hands the browser a file. @param {Blob} data @param {string} name */
export function download(data, name) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(data);
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Follows a stream of events until it ends or signal does. @param {string} path @param {Query} query @param {Following} options */
export async function stream(path, query, { signal, lastId, onEvent, onOpen }) {
	const response = await fetched("GET", path, query, { signal, headers: { Accept: "text/event-stream", ...(lastId ? { "Last-Event-ID": lastId } : {}) } });
	if (!response.ok || !response.body) {
		await answer(response);
		return;
	}
	onOpen?.();
	let rest = "";
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		const blocks = (rest + value).split("\n\n");
		rest = blocks.pop() ?? "";
		for (const block of blocks) {
			let id = "", name = "message", data = "";
			for (const line of block.split("\n")) {
				if (line.startsWith("id:")) id = line.slice(3).trim();
				else if (line.startsWith("event:")) name = line.slice(6).trim();
				else if (line.startsWith("data:")) data += line.slice(5).trimStart();
			}
			onEvent(data ? JSON.parse(data) : null, id, name);
		}
	}
}

/** Asks whether there is a leader again: one that answers a read. */
export async function lookForLeader() {
	const { noLeader } = state;
	if (!noLeader) return;
	try {
		await call("GET", "/types", { limit: 1 }, {});
		set({ noLeader: null, unready: "" });
	} catch {
		await call("GET", "^/readyz", {}, {}).catch(({ message: text }) => state.noLeader && set({ noLeader: { ...noLeader, text } })); // which says more
	}
}

/** The session: by the secret of an earlier login, or on an open node. */
export async function loadSession() {
	const { body } = await get("^/ui/session");
	set({ session: body, me: body.me ?? null, login: body.login && !body.me });
}

/** @param {string} key */
export async function logIn(key) {
	const { body } = await send("POST", "^/ui/login", { key });
	localStorage.setItem(secretName, body.n);
	await loadSession();
	entered();
}

export async function logOut() {
	await send("POST", "^/ui/logout").catch(() => {});
	localStorage.removeItem(secretName);
	location.reload();
}
