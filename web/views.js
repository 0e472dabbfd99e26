// Which views there are. All but the overview come from the node with their first visit.
import { Button, html, Note } from "./parts/bits.js";
import { match } from "./routes.js";
import overview from "./views/overview.js";

/** @import { Entry, View } from "./types/model" */

/** @type {Entry[]} */
const entries = [
	{ route: "/", fetch: async () => ({ default: overview }), view: overview },
	{ route: "/tasks", fetch: () => import("./views/tasks.js") },
	{ route: "/tasks/:id", fetch: () => import("./views/task.js") },
	{ route: "/types", fetch: () => import("./views/types.js") },
	{ route: "/types/:name", fetch: () => import("./views/type.js") },
	{ route: "/failures", fetch: () => import("./views/failures.js") },
	{ route: "/workers", fetch: () => import("./views/workers.js"), allTypes: true },
	{ route: "/workers/:name", fetch: () => import("./views/worker.js"), allTypes: true },
	{ route: "/schedules", fetch: () => import("./views/schedules.js") },
	{ route: "/schedules/:name", fetch: () => import("./views/schedule.js") },
	{ route: "/trail", fetch: () => import("./views/trail.js") },
	{ route: "/cluster", fetch: () => import("./views/cluster.js"), role: "operator" },
];

/** Shown in place of a view that did not come. @type {View} */
const missing = {
	title: () => "Not loaded",
	every: 0,
	load: async () => ({}),
	Body: () => html`<${Note} tone="bad" role="alert">This view did not come from the node. It may be down, or have a newer page. <${Button} onClick=${() => location.reload()}>Reload<//><//>`,
};

/** The entry of a path, and its params. @param {string} path */
export function find(path) {
	for (const entry of entries) {
		const params = match(entry.route, path);
		if (params) return { entry, params };
	}
	return null;
}

/** Fetches the view of an entry. @param {Entry} entry */
export async function fetchView(entry) {
	try {
		return (entry.view = (await entry.fetch()).default);
	} catch (error) {
		console.error(error);
		return missing;
	}
}
