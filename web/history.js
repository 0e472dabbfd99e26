// What this tab has seen of the counts and rates while it was open, as lines of charts with the sentences that say the same.
import { dur, num, plural, rate } from "./text.js";

/** @import { Type } from "./types/model" */
/** @typedef {{at: number, submitted: number|null, completed: number|null, failed: number|null, pending: number|null, claimed: number|null, oldest: number|null}} Point at: seconds since 1970; null: nobody looked */

const everyMS = 5000, pointsMax = 720, namesMax = 20;

/** @type {Map<string, Point[]>} */
const kept = new Map();

/** Keeps what the types show now, and returns all that is kept under that name. @param {string} name @param {Type[]} types @param {number} now */
export function sample(name, types, now) {
  const points = kept.get(name) ?? [], last = points.at(-1);
  if (last && now - last.at * 1000 < everyMS - 500) return points;
  const sum = (/** @type {(type: Type) => number} */ of) => types.reduce((total, type) => total + of(type), 0);
  const gap = { submitted: null, completed: null, failed: null, pending: null, claimed: null, oldest: null };
  const next = [
    ...points, ...(last && now - last.at * 1000 > 4 * everyMS ? [{ at: last.at + 1, ...gap }] : []),
    {
      at: now / 1000, submitted: sum((type) => type.submitted_per_s), completed: sum((type) => type.completed_per_s), failed: sum((type) => type.failed_per_s),
      pending: sum((type) => type.counts.pending), claimed: sum((type) => type.counts.claimed), oldest: Math.max(0, ...types.map((type) => type.oldest_pending_age_ms)),
    },
  ].slice(-pointsMax);
  kept.delete(name);
  kept.set(name, next);
  for (const [oldest] of kept) if (kept.size > namesMax) kept.delete(oldest);
  return next;
}

/** A rate now, against the mean of all before. @param {string} what @param {(number|null)[]} values */
export function rateSentence(what, values) {
  const known = values.filter((value) => value !== null), now = known.at(-1) ?? 0, before = known.slice(0, -1).reduce((sum, value) => sum + value, 0) / (known.length - 1 || 1);
  const change = before ? Math.round((now / before - 1) * 100) : 0;
  return `${what} ${rate(now)}${change ? `, ${num(Math.abs(change))} % ${change < 0 ? "less" : "more"} than before` : ""}.`;
}

/** Null while there is too little to draw. @param {Point[]} points */
export function charts(points) {
  if (points.length < 2) return null;
  const at = points.map((point) => point.at), of = (/** @type {Exclude<keyof Point, "at">} */ field) => points.map((point) => point[field]);
  const last = points[points.length - 1], most = (/** @type {(number|null)[]} */ values) => Math.max(0, ...values.map((value) => value ?? 0));
  const pending = of("pending"), oldest = of("oldest"), longest = most(oldest);
  /** @type {import("./parts/chart.js").Props[]} */
  const list = [
    { title: "Rates", at, format: rate, sentence: rateSentence("Completed", of("completed")), lines: [{ name: "Submitted", values: of("submitted"), tone: 1 }, { name: "Completed", values: of("completed"), tone: 2 }, { name: "Failed", values: of("failed"), tone: 3 }] },
    { title: "Waiting and held", at, format: num, sentence: `${plural(last.pending ?? 0, "task")} pending, at most ${num(most(pending))}.`, lines: [{ name: "Pending", values: pending, tone: 1 }, { name: "Claimed", values: of("claimed"), tone: 4 }] },
    { title: "Oldest pending", at, format: dur, sentence: longest ? `${dur(last.oldest ?? 0)} now, at most ${dur(longest)}.` : "Nothing has waited.", lines: [{ name: "Age", values: oldest, tone: 4 }] },
  ];
  return list;
}
