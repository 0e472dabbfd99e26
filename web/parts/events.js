// Events of the trail: the newest of some kind, and how each is shown.
import { html, Link, Long, TaskLink, Time } from "./bits.js";
import { place } from "../places.js";
import { path } from "../routes.js";

/** @import { Event as EventOf } from "../types/model" */

/** Kinds of events that are about no task. */
export const acts = ("type_changed schedule_set schedule_deleted node_set node_removed level_raised trail_changed member_added member_removed member_promoted member_demoted " +
	"leadership_transferred snapshot_taken backup_saved restored keys_reloaded join_token_made join_token_used join_token_revoked join_token_expired backup_begun " +
	"backup_broken_off restore_begun restore_broken_off").split(" ");

/** Kinds of events of tasks. */
export const ofTasks = "submitted scheduled claimed released failed requeued lease_expired completed retried cancel_requested cancelled deleted expired signalled steps_added finalization_claimed finalized".split(" ");

/** One event in a line; own: of the task whose view it is in. @param {{event: any, own?: boolean}} props */
const Event = ({ event, own }) => html`<li>
	<${Time} at=${event.time} />
	<b>${event.event.replaceAll("_", " ")}</b>
	<span>${!own && event.task_id && html`<${TaskLink} id=${event.task_id} /> `}${event.worker_id && html`<${Link} class="quiet" to=${path("workers", event.worker_id)}>${event.worker_id}<//> `}${event.attempt && html`<span class="soft">attempt ${event.attempt} </span>`}<span class="soft"><${Long} text=${event.message} /></span></span>
</li>`;

/** @param {{events: EventOf[], own?: boolean}} props in the order in which they are shown */
export const EventList = ({ events, own }) => html`<ol class="timeline">${events.map((event) => html`<${Event} key=${place(event)} event=${event} own=${own} />`)}</ol>`;
