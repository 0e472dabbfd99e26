// Lists of schedules, page by page.
/** @import { Loading, Schedule } from "./types/model" */

/**
 * The schedules of the first pages, and whether there are more.
 * @param {Loading["ask"]} ask @param {(page: Schedule[], pages: number) => boolean} goOn says of a page, and of how many there are by now, whether the next is asked for
 * @returns {Promise<{schedules: Schedule[], more: boolean}>}
 */
export async function pagesOf(ask, goOn) {
	/** @type {Schedule[]} */
	const schedules = [];
	for (let after = "", pages = 1; ; pages++) {
		const { schedules: page, next } = await ask("/schedules", { after });
		schedules.push(...page);
		if (!next || !goOn(page, pages)) return { schedules, more: !!next };
		after = next;
	}
}
