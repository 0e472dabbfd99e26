// When a schedule runs, in words.
import { dur } from "./text.js";

/** @type {Words} */
const named = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *" };
const weekdays = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");
const months = " January February March April May June July August September October November December".split(" ");
const nth = " first second third fourth fifth".split(" ");
/** More parts than this are not read out. */
const partsMax = 8;

/** "a, b and c". @param {string[]} list */
const listed = (list) => (list.length < 2 ? list.join("") : list.slice(0, -1).join(", ") + " and " + list[list.length - 1]);

/** "1st". @param {string|number} n */
const ordinal = (n) => n + (["th", "st", "nd", "rd"][Number(n) % 100 > 10 && Number(n) % 100 < 14 ? 0 : Number(n) % 10] ?? "th");

/** The name of a value: its number, or the three letters that it may be written by. @param {string[]} names @param {string} text */
function name(names, text) {
	const at = /^\d+$/.test(text) ? Number(text) : names.findIndex((one) => one.slice(0, 3).toLowerCase() === text.toLowerCase() && one);
	if (!names[at]) throw new RangeError(text);
	return names[at];
}

/** Each part of a field in words. @param {string} field @param {(part: string) => string} word */
function parts(field, word) {
	const all = field.split(",");
	if (all.length > partsMax) throw new RangeError(field);
	return listed(all.map(word));
}

/** @param {string[]} names */
const ranged = (names) => (/** @type {string} */ part) => {
	const [, from, to] = /^(\w+)(?:-(\w+))?$/.exec(part) ?? [];
	if (!from) throw new RangeError(part);
	return to ? `${name(names, from)} to ${name(names, to)}` : name(names, from);
};

/** @param {string} part of the field of weekdays */
function weekday(part) {
	const [, day, rule, count] = /^(\d)(?:(L)|#([1-5]))$/.exec(part.toUpperCase()) ?? [];
	if (rule) return `the last ${name(weekdays, day)} of the month`;
	return count ? `the ${nth[Number(count)]} ${name(weekdays, day)} of the month` : ranged(weekdays)(part);
}

/** @param {string} part of the field of days */
function day(part) {
	if (part.toUpperCase() === "L") return "the last day";
	const [, near] = /^(\d+)W$/i.exec(part) ?? [];
	if (near) return `the working day nearest to the ${ordinal(near)}`;
	const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
	if (!from) throw new RangeError(part);
	return to ? `the ${ordinal(from)} to the ${ordinal(to)}` : `the ${ordinal(from)}`;
}

/** @param {string} minutes @param {string} hours */
function time(minutes, hours) {
	const [, step] = /^\*\/(\d+)$/.exec(minutes) ?? [], [, hourStep] = /^\*\/(\d+)$/.exec(hours) ?? [];
	const ofHours = hours === "*" ? "" : hourStep ? ` of every ${ordinal(hourStep)} hour` : ` from ${parts(hours, (part) => part.split("-").map((hour, i) => clock(hour, i ? "59" : "00")).join(" to "))}`;
	if (minutes === "*") return "every minute" + ofHours;
	if (step) return `every ${step} minutes` + ofHours;
	const past = parts(minutes, (minute) => String(whole(minute, 59)));
	if (hours === "*" || hourStep) {
		const every = hourStep ? `every ${hourStep} hours` : "every hour";
		return past === "0" ? every : `${past} ${past === "1" ? "minute" : "minutes"} past ${hourStep ? `every ${ordinal(hourStep)} hour` : every}`;
	}
	return "at " + parts(hours, (hour) => parts(minutes, (minute) => clock(hour, minute)));
}

/** @param {string} text @param {number} max */
function whole(text, max) {
	if (!/^\d+$/.test(text) || Number(text) > max) throw new RangeError(text);
	return Number(text);
}

/** @param {string} hour @param {string} minute */
const clock = (hour, minute) => `${String(whole(hour, 23)).padStart(2, "0")}:${String(whole(minute, 59)).padStart(2, "0")}`;

/** A cron expression in words, "" where it has no plain ones. @param {string} cron */
export function cronWords(cron) {
	const fields = (named[cron.trim().toLowerCase()] ?? cron).trim().split(/\s+/).map((field) => (field === "?" ? "*" : field));
	if (fields.length !== 5) return "";
	const [minutes, hours, days, month, week] = fields;
	try {
		const on = [];
		if (days !== "*") on.push(`on ${parts(days, day)}${month === "*" ? " of the month" : ""}`);
		if (week !== "*") on.push(`${days === "*" ? "on" : "or on"} ${parts(week, weekday)}`);
		if (month !== "*") on.push(`${days === "*" ? "in" : "of"} ${parts(month, ranged(months))}`);
		const at = time(minutes, hours);
		return at + (on.length ? " " + on.join(" ") : at.startsWith("at ") ? " every day" : "");
	} catch (error) {
		if (error instanceof RangeError) return "";
		throw error;
	}
}

/** A schedule's plan in words and as written. @param {{cron: string|null, every_ms: number|null, timezone?: string|null}} plan */
export function planWords({ cron, every_ms: every }) {
	if (cron === null) return { words: `every ${dur(every ?? 0)}`, written: "" };
	return { words: cronWords(cron), written: cron };
}
