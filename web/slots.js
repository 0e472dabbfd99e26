// When a plan runs next, as this browser works it out for show: the node decides. internal/cron/testdata/slots.json holds both to the same.

const dayMS = 86400000, daysLooked = 366 * 41;
/** @type {Record<string, string>} */
export const named = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *" };
const monthNames = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", weekdayNames = "SUNMONTUEWEDTHUFRISAT";

/** @param {string} text @param {number} min @param {number} max @param {string} [names] */
function value(text, min, max, names = "") {
  const at = names.indexOf(text), n = text.length === 3 && at >= 0 && at % 3 === 0 ? min + at / 3 : /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  if (!(n >= min && n <= max)) throw new RangeError(text);
  return n;
}

/** The values of a field. rule takes the parts that depend on the month. @param {string} field @param {number} min @param {number} max @param {string} [names] @param {(part: string) => boolean} [rule] */
function values(field, min, max, names, rule) {
  const all = new Set();
  for (const part of (field === "?" && rule ? "*" : field).split(",")) {
    if (rule?.(part)) continue;
    const [span, step] = part.split("/"), [first, last] = span.split("-");
    const from = first === "*" && last === undefined ? min : value(first, min, max, names);
    let to = first === "*" && last === undefined ? max : last !== undefined ? value(last, min, max, names) : step !== undefined ? max : from;
    if (to === 0 && max === 7 && from > 0) to = 7;
    if (from > to || part.split("/").length > 2 || span.split("-").length > 2) throw new RangeError(part);
    for (let n = from, by = step === undefined ? 1 : value(step, 1, max); n <= to; n += by) all.add(n);
  }
  return all;
}

/** @param {string} cron */
function read(cron) {
  const fields = (named[cron.trim().toLowerCase()] ?? cron).trim().toUpperCase().split(/\s+/);
  if (fields.length !== 5 || cron.length > 256) throw new RangeError(cron);
  /** @type {Record<"days"|"weekdays", ((first: number, last: number) => number)[]>} the day that each rule means, given the weekday of the 1st and the last day */
  const rules = { days: [], weekdays: [] };
  const days = values(fields[2], 1, 31, "", (part) => {
    const [, near] = /^(\d+)W$/.exec(part) ?? [];
    if (part !== "L" && !near) return false;
    rules.days.push((first, last) => {
      const day = near ? value(near, 1, 31) : 0, weekday = (first + day - 1) % 7;
      if (!day) return last;
      if (day > last) return 0;
      if (weekday === 6) return day === 1 ? 3 : day - 1;
      return weekday === 0 ? (day === last ? day - 2 : day + 1) : day;
    });
    return true;
  });
  const weekdays = values(fields[4], 0, 7, weekdayNames, (part) => {
    const [, weekday, rule, nth] = /^([0-7])(?:(L)|#([1-5]))$/.exec(part) ?? [];
    if (!rule && !nth) return false;
    rules.weekdays.push((first, last) => {
      const begin = 1 + ((Number(weekday) % 7) - first + 7) % 7, day = rule ? begin + Math.floor((last - begin) / 7) * 7 : begin + (Number(nth) - 1) * 7;
      return day > last ? 0 : day;
    });
    return true;
  });
  if (weekdays.has(7)) weekdays.add(0);
  const open = (/** @type {string} */ field) => "*?".includes(field[0]);
  return {
    minutes: [...values(fields[0], 0, 59)], hours: [...values(fields[1], 0, 23)], months: values(fields[3], 1, 12, monthNames), anyHour: fields[1][0] === "*",
    /** @param {number} year @param {number} month from 0 @param {number} day */
    runs(year, month, day) {
      const first = new Date(Date.UTC(year, month, 1)).getUTCDay(), last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
      const inMonth = days.has(day) || rules.days.some((rule) => rule(first, last) === day), inWeek = weekdays.has((first + day - 1) % 7) || rules.weekdays.some((rule) => rule(first, last) === day);
      return this.months.has(month + 1) && (open(fields[2]) || open(fields[4]) ? inMonth && inWeek : inMonth || inWeek);
    },
  };
}

/** How far a zone's clocks are ahead of UTC, by time. @param {string} zone */
function offsets(zone) {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" });
  return (/** @type {number} */ at) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - Math.floor(at / 1000) * 1000;
  };
}

/** When the clock on the wall shows a time: never where it is left out, twice where it comes twice. Where it is left out, jump is when. @param {number} wall @param {(at: number) => number} offset */
function moments(wall, offset) {
  const before = offset(wall - dayMS), after = offset(wall + dayMS);
  const at = [...new Set([wall - before, wall - after])].filter((one) => wall - one === offset(one)).sort((a, b) => a - b);
  if (at.length) return { at, jump: at[0] };
  let low = wall - dayMS, high = wall + dayMS;
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000;
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return { at, jump: high };
}

/**
 * The next times at which a plan runs, in ms since 1970; none if it is no plan.
 * @param {{cron?: string|null, timezone?: string|null, every_ms?: number|null}} plan @param {number} after @param {number} want
 */
export function slots({ cron, timezone, every_ms: every }, after, want) {
  if (!cron) return every ? Array.from({ length: want }, (_, i) => after + (i + 1) * every) : [];
  /** @type {number[]} */
  const found = [];
  try {
    const plan = read(cron), offset = offsets(timezone || "UTC"), begin = Math.floor((after + offset(after)) / dayMS) * dayMS;
    for (let day = begin, looked = 0; found.length < want && looked < daysLooked; day += dayMS, looked++) {
      const date = new Date(day);
      if (!plan.runs(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate())) continue;
      const ofDay = plan.hours.flatMap((hour) => plan.minutes.flatMap((minute) => {
        const { at, jump } = moments(day + hour * 3600000 + minute * 60000, offset);
        return plan.anyHour ? at : [jump];
      }));
      found.push(...[...new Set(ofDay)].filter((at) => at > after && at > (found.at(-1) ?? 0)).sort((a, b) => a - b));
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // no plan, no such zone
  }
  return found.slice(0, want);
}
