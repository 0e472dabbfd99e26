// One task: why it does not run, who holds it, what it was given, what has happened to it.
import { Bar, Card, Copy, Countdown, Empty, Facts, html, Labels, Link, Long, Note, Status, TaskLink, Time } from "../parts/bits.js";
import { EventList } from "../parts/events.js";
import { Payload } from "../parts/payload.js";
import { Steps } from "../parts/steps.js";
import { Table } from "../parts/table.js";
import { Act, act, confirm, done, form } from "../actions.js";
import { Refusal, send } from "../api.js";
import { go, path } from "../routes.js";
import { rawField } from "../raw.js";
import { state } from "../store.js";
import { jsonFault, readLabels, unfit } from "../submitbody.js";
import { submit } from "./submit.js";
import { backoffWords, dur, ended, labelLines, num, plural } from "../text.js";

/** @import { Attempt, Column, Event, Reason as AReason, Reasons, Task, TaskData, View } from "../types/model" */

/** A reason in the server's words, with links to what it names. @param {{reason: AReason}} props */
const Reason = ({ reason: { code, message, run_at: runAt, steps, id, holders, at, last_asked_at: asked } }) => html`<li><span class="grow"><b>${message || code}</b>
	${steps && html` <span class="soft">${steps.join(", ")}</span>`}
	${id && html` <${TaskLink} id=${id} />`}
	${[runAt, at, asked].map((time) => time && html` <${Time} at=${time} />`)}
	${holders && html` ${holders.slice(0, 10).map((one) => html`<span key=${one.task_id}><${Link} to=${path("tasks", one.task_id)}>${one.task_id}<//> <span class="soft">${one.worker_id}</span> </span>`)}`}
</span></li>`;

/** @param {{why: Reasons|null, task: Task, heading?: any}} props */
export function Why({ why, task, heading = "Why it is not running" }) {
	if (!why || ended.includes(task.status) || task.status === "claimed" || task.status === "running") return null;
	const queued = why.reasons.some((reason) => reason.code === "queued");
	return html`<${Card} title=${heading}>
		<ul class="list">${why.reasons.map((reason) => html`<${Reason} key=${reason.code} reason=${reason} />`)}</ul>
		${why.ahead !== null && !queued && html`<p class="soft">${why.ahead === 0 ? "It is the next of its type." : `${plural(why.ahead, "task")} of its type ${why.ahead === 1 ? "comes" : "come"} first.`}</p>`}
	<//>`;
}

/** What a task waits for that needs a signal, and how to send it. @param {{task: Task}} props */
function Signal({ task }) {
	if (!task.wait_for_signal_ms || task.signalled || ended.includes(task.status)) return null;
	const command = `claimq signal ${task.id} '{"approved": true}'`;
	return html`<${Card} title="It waits for a signal" tools=${html`<${Act} role="producer" kind="primary" onClick=${() => signal(task)}>Send a signal<//>`}>
		<p>${task.signal_until
			? html`Without one it fails: <${Time} at=${task.signal_until} />.`
			: `Once the steps that it depends on have completed it waits for ${dur(task.wait_for_signal_ms)}. A signal that comes before is kept.`}</p>
		<p class="soft">By a program or a person: POST /api/tasks/${task.id}/signal, or <code>${command}</code> <${Copy} text=${command} /></p>
	<//>`;
}

/** @param {{task: Task, at: number}} props */
function Held({ task, at }) {
	const { worker_id: worker, claimed_at: from, lease_expires_at: until, lease_remaining_ms: left } = task;
	if (!worker || !from || !until || left === null) return null;
	const whole = Math.max(Date.parse(until) - Date.parse(from), left, 1);
	return html`<${Card} title=${html`Held by <${Link} to=${path("workers", worker)}>${worker}<//>`}>
		<${Bar} part=${left / whole} label="Time left of the lease" tone=${left < whole / 5 ? "warn" : ""} />
		<p class="soft"><${Countdown} left=${left} whole=${whole} at=${at} />; attempt ${num(task.attempts)}, token ${task.claim_token}, claimed <${Time} at=${from} /></p>
		${task.cancel_requested && html`<${Note} tone="warn">A cancel was asked. Its worker learns it with its next extend; what it completes counts.<//>`}
	<//>`;
}

/** @type {Column<Attempt>[]} */
const attemptColumns = [
	{ key: "worker_id", title: "Worker", main: true },
	{ key: "claim_token", title: "Token", num: true },
	{ key: "claimed_at", title: "Claimed", time: true },
	{ key: "lasted", title: "Lasted", num: true, cell: (attempt) => (attempt.ended_at ? dur(Date.parse(attempt.ended_at) - Date.parse(attempt.claimed_at)) : "still held") },
	{ key: "outcome", title: "Outcome" },
	{ key: "error", title: "Error", wide: true, cell: (attempt) => attempt.error && html`<${Long} text=${attempt.error} />` },
];

/** @param {{data: TaskData}} props */
function Body({ data }) {
	if (data.missing) {
		return html`<${Card}><${Empty} title="There is no such task, or it was removed"><p>Ended tasks are removed when their retention is over.</p><//><//>
			${data.events?.length > 0 && html`<${Events} events=${data.events} />`}`;
	}
	const { task, why, events, tries, params, result, progress, signal: handed, at } = data;
	const slug = `task-${task.id}`;
	return html`
		<p class="row lead"><${Status} status=${task.status} cancel=${task.cancel_requested} /><${Link} to=${path("types", task.task_type)}>${task.task_type}<//>
			${!task.steps && html`<span class="soft">attempt ${num(task.attempts)} of ${task.max_attempts || "∞"}</span>`}<span class="soft">made <${Time} at=${task.created_at} /></span>
			${task.completed_at && html`<span class="soft">ended <${Time} at=${task.completed_at} /></span>`}
			${task.parent_id && html`<span>step <b>${task.step}</b> of <${TaskLink} id=${task.parent_id} /></span>`}</p>
		<${Why} why=${why} task=${task} />
		<${Signal} task=${task} />
		<${Held} task=${task} at=${at} />
		${task.error && html`<${Card} title=${task.status === "failed" ? "Why it failed" : "Its last error"} tools=${html`<${Copy} text=${task.error} />`}><pre class="error" tabindex="0">${task.error}</pre><//>`}
		${progress !== undefined && html`<${Payload} title="Progress" raw=${progress} name=${slug + "-progress"} />`}
		${handed !== undefined && html`<${Payload} title="Signal" raw=${handed} name=${slug + "-signal"} hidden=${!state.settings.params} />`}
		${task.steps && html`<${Steps} steps=${task.steps} />`}
		<div class="grid">
			${(params !== undefined || task.payload) && html`<${Payload} title="Params" raw=${params} base64=${task.payload} name=${slug + "-params"} hidden=${!state.settings.params} />`}
			${(result !== undefined || task.result_payload) && html`<${Payload} title="Result" raw=${result} base64=${task.result_payload} name=${slug + "-result"} hidden=${!state.settings.params} />`}
		</div>
		${task.attempts_log && task.attempts_log.length > 0 && html`<${Card} title="Attempts"><${Table} caption="Attempts, newest first" rows=${[...task.attempts_log].reverse()} id="claim_token" cols=${attemptColumns} /><//>`}
		${tries && tries.length > 0 && html`<${Card} title="Claims for its finalization"><ul class="list">${tries.map((one, i) => html`<li key=${i}><${Time} at=${one.attempted_at} /><b>${one.processor_id}</b><span>${one.message}</span></li>`)}</ul><//>`}
		<${Card} title="About it"><${Facts} of=${[
			["Priority", num(task.priority)],
			["Labels", task.labels && html`<${Labels} labels=${task.labels} />`],
			["Key", task.idempotency_key && html`<span class="mono">${task.idempotency_key}</span>${task.unique ? html` <span class="soft">taken ${task.unique === "window" ? `for ${dur(task.unique_ms ?? 0)} after its submit` : "while it has not ended"}</span>` : ""}`],
			["Group", task.group],
			["Share key", task.share_key],
			["Runs", task.run_at && html`<${Time} at=${task.run_at} />`],
			["Expires", task.expires_at && html`<${Time} at=${task.expires_at} />${task.expires_again ? html` <span class="soft">also while it waits after a claim</span>` : ""}`],
			["Lease", task.lease_ms && dur(task.lease_ms)],
			["Kept after its end", task.retention_ms !== undefined ? (task.retention_ms < 0 ? "until deleted" : dur(task.retention_ms)) : null],
			["Backoff", task.backoff && backoffWords(task.backoff)],
			["Depends on", task.depends_on?.join(", ")],
			["When a step fails", task.on_step_failure],
			["Ended by", task.finalize && (task.finalize === "claim" ? "a processor" : "its last step")],
			["Trace", task.traceparent && html`<span class="mono">${task.traceparent}</span> <${Copy} text=${task.traceparent} />`],
			["Copy of", task.origin && html`<${TaskLink} id=${task.origin.id} />`],
			["Goes on as", task.moved_to_id && html`<${TaskLink} id=${task.moved_to_id} />`],
			["Changed", html`<${Time} at=${task.updated_at} />`],
		]} /><//>
		<${Events} events=${events} />`;
}

/** @param {{events: Event[]}} props */
const Events = ({ events }) => html`<${Card} title="What happened">${events.length ? html`<${EventList} events=${[...events].reverse()} own />` : html`<p class="soft">The trail has no events of it any more.</p>`}<//>`;

/** A time for a field of a form, in this browser's zone. @param {string|undefined} at */
const local = (at) => (at ? new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 19) : "");

/** @param {Task} task */
const change = (task) =>
	form({
		title: `Change task ${task.id}`,
		yes: "Change it",
		fields: [
			{ name: "priority", label: "Priority", type: "number", value: String(task.priority), hint: "Higher is claimed first." },
			...(task.steps ? [] : [{ name: "run_at", label: "Runs", type: "datetime-local", value: task.status === "scheduled" ? local(task.run_at) : "", hint: "This browser's time; empty: at once." }]),
			{ name: "labels", label: "Labels", type: "textarea", mono: true, value: labelLines(task.labels).join("\n"), hint: "One name:value a line; they replace all." },
		],
		async submit({ priority, run_at: runAt, labels }) {
			try {
				await act(`Task ${task.id} changed`, "PATCH", "/tasks" + path(task.id), {
					priority: Number(priority), labels: readLabels(labels), ...(task.steps ? {} : { run_at: runAt ? new Date(runAt).toISOString() : null }),
				});
			} catch (error) {
				if (error instanceof Refusal && error.status === 409) error.message += `: it is ${error.body.status} now`;
				throw error;
			}
		},
	});

/** Hands the task its signal. @param {Task} task */
const signal = (task) =>
	form({
		title: `Send task ${task.id} its signal`, yes: "Send it",
		fields: [{ name: "signal", label: "Signal", type: "textarea", mono: true, value: '{"approved": true}', hint: "JSON, which its worker gets; or nothing. The first signal counts." }],
		async submit({ signal }) {
			if (signal.trim() && jsonFault(signal)) throw unfit("signal", `The signal is no JSON: ${jsonFault(signal)}`);
			await act(`Task ${task.id} has its signal`, "POST", "/tasks" + path(task.id) + "/signal", signal.trim() ? `{"signal":${signal}}` : {});
		},
	});

/** Retries it; where attempts are used up or its key is taken, says what can be done. @param {Task} task @param {any} [body] */
async function retry(task, body = {}) {
	try {
		await act(`Task ${task.id} retried`, "POST", "/tasks" + path(task.id) + "/retry", body);
	} catch (error) {
		if (!(error instanceof Refusal)) throw error;
		if (error.code === "max_attempts_reached") {
			await form({
				title: "All attempts are used", yes: "Retry it", fields: [{ name: "add", label: "More attempts", type: "number", value: "1", required: true, hint: `${error.body.attempts} of ${error.body.max_attempts} are used.` }],
				submit: ({ add }) => retry(task, { ...body, add_attempts: Number(add) }).then(() => true),
			});
		} else if (error.code === "key_taken") {
			if (await confirm({ title: "Its key is taken", body: `Task ${error.body.task_id} has its key now. Retry this one once that has ended.`, yes: `Show task ${error.body.task_id}` })) go(path("tasks", error.body.task_id));
		} else throw error;
	}
}

/** @param {{data: TaskData}} shown */
function tools({ data }) {
	if (data.missing) return null;
	const { task, params } = data;
	const at = "/tasks" + path(task.id), over = ended.includes(task.status);
	return html`
		${(task.status === "failed" || task.status === "cancelled") && html`<${Act} role="producer" kind="primary" onClick=${() => retry(task)}>Retry<//>`}
		${task.status === "claimed" && html`<${Act} role="producer" onClick=${async () => {
			if (await confirm({ title: `Take task ${task.id} from ${task.worker_id}`, body: `${task.worker_id} may still be working; its token ${task.claim_token} ends now, and the task is pending again.`, yes: "Take it" })) await retry(task, { claim_token: task.claim_token });
		}}>Take from worker<//>`}
		${!over && task.status !== "claimed" && html`<${Act} role="producer" onClick=${() => change(task)}>Change<//>`}
		${!over && !task.cancel_requested && html`<${Act} role="producer" kind="danger" onClick=${async () => {
			const sure = task.status !== "claimed" || (await confirm({ title: `Cancel task ${task.id}`, body: `Its worker is asked to stop; a complete still counts.`, yes: "Ask for it" }));
			if (sure) await act(`Task ${task.id}: cancel asked`, "POST", at + "/cancel");
		}}>Cancel<//>`}
		${!task.steps && html`<${Act} role="producer" onClick=${() => submit({ ...task, raw: params })}>Submit another like this<//>`}
		${over && !task.parent_id && html`<${Act} role="producer" kind="danger" onClick=${async () => {
			if (!(await confirm({ title: `Delete task ${task.id}`, body: `It is gone for good${task.steps ? `, and its ${plural(task.steps.length, "step")}` : ""}.`, yes: "Delete it", danger: true }))) return;
			await send("DELETE", at);
			done(`Task ${task.id} deleted`);
			go("/tasks", { type: task.task_type });
		}}>Delete<//>`}`;
}

/** @type {View} */
export default {
	title: ({ params }) => `Task ${params.id}`,
	every: (data) => (data?.task?.status === "claimed" ? 1000 : 5000),
	async load({ params, ask, get, data }) {
		const at = "/tasks" + path(params.id), at0 = Date.now();
		const events = () => ask(at + "/events").then(({ events }) => events);
		let answer;
		try {
			answer = await get(at);
		} catch (error) {
			if (error instanceof Refusal && error.code === "task_not_found") return { missing: true, events: await events().catch(() => []) };
			throw error;
		}
		const { task } = answer.body, waits = ["pending", "scheduled", "blocked"].includes(task.status);
		const same = data?.task?.updated_at === task.updated_at && data.events;
		const [why, told, tries] = await Promise.all([
			waits ? ask(at + "/why") : null,
			same ? data.events : events(),
			task.finalize === "claim" ? ask(at + "/finalization").then(({ attempts }) => attempts) : null,
		]);
		const raw = (/** @type {string} */ name) => rawField(answer.text, "task", name);
		return { task, why, tries, events: told, at: at0, params: raw("params"), result: raw("result"), progress: raw("progress"), signal: raw("signal") };
	},
	tools,
	Body,
};
