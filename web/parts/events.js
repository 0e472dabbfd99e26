// Events of the trail: the newest of some kind, and how each is shown.
import { html, Link, Long, TaskLink, Time } from "./bits.js";
import { place } from "../places.js";
import { path } from "../routes.js";

/** @import { Event as EventOf } from "../types/model" */

/** Every kind of event, and whether it is of a task; the others are of what operators did. @type {Record<EventOf["event"], boolean>} */
const kinds = {
	submitted: true, scheduled: true, claimed: true, released: true, failed: true, requeued: true, lease_expired: true, completed: true, retried: true,
	cancel_requested: true, cancelled: true, deleted: true, expired: true, signalled: true, steps_added: true, finalization_claimed: true, finalized: true,
	type_changed: false, share_changed: false, defaults_changed: false, schedule_set: false, schedule_deleted: false, node_set: false, node_removed: false, level_raised: false,
	trail_changed: false, member_added: false, member_removed: false, member_promoted: false, member_demoted: false, leadership_transferred: false, snapshot_taken: false,
	backup_saved: false, restored: false, keys_reloaded: false, join_token_made: false, join_token_used: false, join_token_revoked: false, join_token_expired: false,
	backup_begun: false, backup_broken_off: false, restore_begun: false, restore_broken_off: false,
};

/** @param {boolean} ofTask */
const kindsOf = (ofTask) => Object.entries(kinds).flatMap(([kind, of]) => of === ofTask ? [kind] : []);

/** Kinds of events that are about no task. */
export const acts = kindsOf(false);

/** Kinds of events of tasks. */
export const ofTasks = kindsOf(true);

/** One event in a line; own: of the task whose view it is in. @param {{event: any, own?: boolean}} props */
const Event = ({ event, own }) => html`<li>
	<${Time} at=${event.time} />
	<b>${event.event.replaceAll("_", " ")}</b>
	<span>${!own && event.task_id && html`<${TaskLink} id=${event.task_id} /> `}${event.worker_id && html`<${Link} class="quiet" to=${path("workers", event.worker_id)}>${event.worker_id}<//> `}${event.attempt && html`<span class="soft">attempt ${event.attempt} </span>`}<span class="soft"><${Long} text=${event.message} /></span></span>
</li>`;

/** @param {{events: EventOf[], own?: boolean}} props in the order in which they are shown */
export const EventList = ({ events, own }) => html`<ol class="timeline">${events.map((event) => html`<${Event} key=${place(event)} event=${event} own=${own} />`)}</ol>`;
