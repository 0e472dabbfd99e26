// What the server takes of a task, so that what it would refuse is refused before it is sent.
//
// clients/options.json, which is made by the server's decoder, has examples of each field; a test
// holds this file to them.

import { Invalid } from "./errors.js";

const DAY_MS = 24 * 3_600_000;
/** The longest time that a task can be told to wait, and a handler can ask for, in milliseconds: a year. */
export const TIME_MAX_MS = 365 * DAY_MS;

const INT32_MAX = 2 ** 31 - 1;
const STEPS_MAX = 1_000;
const LABELS_MAX = 16;
const LABEL_BYTES = 64;

/** What a value must be. */
interface Rule {
  readonly holds: (value: unknown) => boolean;
  readonly text: string;
}

function integer(low: number, high: number): Rule {
  return { holds: (v) => Number.isInteger(v) && low <= (v as number) && (v as number) <= high, text: `an integer from ${low} to ${high}` };
}

function number(low: number, high: number): Rule {
  return { holds: (v) => typeof v === "number" && low <= v && v <= high, text: `a number from ${low} to ${high}` };
}

function oneOf(...texts: string[]): Rule {
  return { holds: (v) => texts.includes(v as string), text: texts.map((text) => JSON.stringify(text)).join(" or ") };
}

function matching(pattern: RegExp, text: string): Rule {
  return { holds: (v) => typeof v === "string" && pattern.test(v), text };
}

const bytes = new TextEncoder();

function isKey(value: unknown, most: number): boolean {
  if (typeof value !== "string" || value === "" || value.length > most || /[\x00-\x1f\x7f]/.test(value)) return false;
  return bytes.encode(value).length <= most;
}

/** Of task types, and of the names of steps. */
export const TYPE = matching(/^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/, "1 to 128 of A-Z a-z 0-9 _ . : -, and neither . nor .. alone");

const TIME: Rule = { holds: (v) => typeof v === "string" && /^\d{4}-/.test(v) && Date.parse(v) >= 0, text: "a time of the years 1970 to 9999" };
const DELAY = integer(0, TIME_MAX_MS);

type Rules = Readonly<Record<string, Rule>>;

const RULES: Rules = {
  task_type: TYPE,
  idempotency_key: {
    holds: (v) => isKey(v, 256) && v !== "." && v !== "..",
    text: "a string of 1 to 256 bytes without control characters, and neither . nor ..",
  },
  unique: oneOf("exists", "active", "replace", "window"),
  unique_ms: integer(1, DAY_MS),
  delay_ms: DELAY,
  run_at: TIME,
  expires_at: TIME,
  expires_again: { holds: (v) => typeof v === "boolean", text: "true or false" },
  priority: integer(-INT32_MAX - 1, INT32_MAX),
  max_attempts: integer(0, INT32_MAX),
  lease_ms: integer(100, DAY_MS),
  retention_ms: integer(-1, 100 * TIME_MAX_MS),
  attributes: { holds: (v) => typeof v === "object" && v !== null && !Array.isArray(v), text: "an object" },
  group: { holds: (v) => isKey(v, 128), text: "a string of 1 to 128 bytes without control characters" },
  share_key: { holds: (v) => isKey(v, 128), text: "a string of 1 to 128 bytes without control characters" },
  wait_for_signal_ms: integer(1, TIME_MAX_MS),
  traceparent: matching(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/, "a W3C trace context in lower case, 00-<32 hex digits>-<16>-<2>"),
  steps: { holds: (v) => Array.isArray(v) && v.length >= 1 && v.length <= STEPS_MAX, text: `1 to ${STEPS_MAX} steps` },
  finalize: oneOf("auto", "claim"),
  on_step_failure: oneOf("fail", "continue"),
};

const BACKOFF: Rules = { initial_ms: DELAY, max_ms: integer(1, TIME_MAX_MS), factor: number(1, 1_000), jitter: number(0, 1) };

/** What a task has as the API takes it; undefined is not given. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the error of a field that the server would refuse. */
export function refused(field: string, why: string): Invalid {
  return new Invalid(`${field} ${why}`, { code: "invalid_task", field });
}

function hold(rules: Rules, fields: Fields, path: string): void {
  for (const [name, rule] of Object.entries(rules)) {
    const value = fields[name];
    if (value !== undefined && !rule.holds(value)) throw refused(path + name, `is ${shown(value)}: it must be ${rule.text}`);
  }
}

/** Returns a value for people. */
function shown(value: unknown): string {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 100 ? `${text.slice(0, 100)}...` : text;
}

/**
 * Checks the options of a task as the API takes it.
 *
 * @throws {Invalid} The server would refuse one; `field` says which.
 */
export function check(task: Fields): void {
  const has = (name: string) => task[name] !== undefined;
  hold(RULES, task, "");
  if (has("backoff")) checkBackoff(task["backoff"]);
  if (has("labels")) checkLabels(task["labels"]);
  if ((task["unique"] === "window") !== has("unique_ms")) throw refused("unique_ms", "and unique: window are not given together: give both");
  if (["active", "replace", "window"].includes(task["unique"] as string) && !has("idempotency_key")) throw refused("unique", "is given without a key, which is to be unique");
  if (has("run_at") && has("delay_ms")) throw refused("delay_ms", "and run_at are both given: give one of them");
  if (has("run_at") && has("expires_at") && Date.parse(task["expires_at"] as string) <= Date.parse(task["run_at"] as string)) {
    throw refused("expires_at", "is not after run_at: the task could never be claimed");
  }
  if (task["expires_again"] === true && !has("expires_at")) throw refused("expires_again", "is given without expires_at: give both");
  if (has("steps")) {
    for (const only of ["run_at", "delay_ms", "expires_at", "group", "share_key", "wait_for_signal_ms"]) {
      if (has(only)) throw refused(only, "is given, which a task with steps cannot have: its steps can");
    }
    return;
  }
  for (const only of ["finalize", "on_step_failure"]) {
    if (has(only)) throw refused(only, "is given, which is only for a task with steps");
  }
}

function checkBackoff(backoff: unknown): void {
  if (typeof backoff !== "object" || backoff === null) throw refused("backoff", `is ${shown(backoff)}: it must be a backoff`);
  const fields = backoff as Fields;
  hold(BACKOFF, fields, "backoff.");
  const { initial_ms: initial, max_ms: most = TIME_MAX_MS } = fields as { initial_ms?: number; max_ms?: number };
  if (initial === undefined) throw refused("backoff.initial_ms", "is missing");
  if (most < initial) throw refused("backoff.max_ms", `is ${most}: it must not be below initial_ms, ${initial}`);
}

function checkLabels(labels: unknown): void {
  if (typeof labels !== "object" || labels === null) throw refused("labels", `are ${shown(labels)}: they must be an object`);
  const all = Object.entries(labels);
  if (all.length > LABELS_MAX) throw refused("labels", `are ${all.length}: at most ${LABELS_MAX} are taken`);
  for (const [name, value] of all) {
    if (!isKey(name, LABEL_BYTES) || name.includes(":")) {
      throw refused("labels", `have ${shown(name)}: they must have names of 1 to ${LABEL_BYTES} bytes without : and control characters`);
    }
    if (value !== "" && !isKey(value, LABEL_BYTES)) {
      throw refused(`labels.${name}`, `is ${shown(value)}: it must be a string of up to ${LABEL_BYTES} bytes without control characters`);
    }
  }
}
