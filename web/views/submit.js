// The dialog that submits a task, blank or like another one.
import { html, Note } from "../parts/bits.js";
import { done, form, may } from "../actions.js";
import { get, send } from "../api.js";
import { reloadNow } from "../live.js";
import { path } from "../routes.js";
import { state } from "../store.js";
import { bodyOf, jsonFault } from "../submitbody.js";
import { labelLines } from "../text.js";

/** The number of suggested types: the most submitted of the last minute, then by name. */
const typesOffered = 200;

/** A new random key, so that clicking twice makes one task. */
const freshKey = () => "page-" + Array.from(crypto.getRandomValues(new Uint8Array(9)), (byte) => byte.toString(36).padStart(2, "0")).join("");

/** Asks for a task and submits it. @param {any} [like] a task to begin with; its params as raw, the bytes that they are */
export async function submit(like = {}) {
	const why = may("producer");
	if (why) return done(why, { tone: "bad" });
	const own = state.me?.task_types, types = own ?? (await get("/types", { order: "submitted_per_s", limit: typesOffered }).then(({ body }) => body.types.map((/** @type {any} */ type) => type.task_type), () => []));
	return form({
		title: like.id ? `Submit another like task ${like.id}` : "Submit a task", yes: "Submit it", wide: true,
		intro: like.payload && html`<${Note} tone="warn">Its params are binary: this form takes JSON.<//>`,
		fields: [
			{ name: "task_type", label: "Type", value: like.task_type ?? state.place.query.type ?? own?.[0] ?? "", placeholder: "default", list: types, hint: "The name by which workers claim." },
			{ name: "priority", label: "Priority", value: like.priority ? String(like.priority) : "", placeholder: "0", hint: "Higher is claimed first." },
			{ name: "delay", label: "Delay", placeholder: "none", hint: "As 30 s, 5 min, 1 h." },
			{ name: "params", label: "Params", type: "textarea", mono: true, value: like.raw ?? "{}" },
			{ name: "labels", label: "Labels", type: "textarea", mono: true, value: labelLines(like.labels).join("\n"), hint: "One name:value a line." },
			{ name: "idempotency_key", label: "Key", mono: true, value: freshKey(), hint: "A repeat with the same key adds no second task." },
			{ name: "group", label: "Group", value: like.group ?? "", hint: "Tasks of a group are claimed one at a time." },
			{ name: "expires", label: "Expires", type: "datetime-local", hint: "A task not claimed by then fails." },
		],
		below: ({ params }) => html`<p class="small" aria-live="polite">${jsonFault(params) ? html`<span class="bad">Params are no JSON yet: ${jsonFault(params)}</span>` : html`<span class="soft">Params are sent as typed.</span>`}</p>`,
		async submit(values) {
			const { body } = await send("POST", "/tasks", bodyOf(values)), { id } = body.task;
			done(body.created === false ? `Task ${id} has this key already` : `Task ${id} submitted`, { href: "#" + path("tasks", id), label: "show it" });
			await reloadNow();
		},
	});
}
