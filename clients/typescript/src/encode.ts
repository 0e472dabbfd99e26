// What a worker says, as JSON, within what the cluster takes.

import { Buffer } from "node:buffer";
import type { Done } from "./attempt.js";
import { toJson } from "./json.js";

/** What the cluster takes at most, in bytes. */
export interface Limits {
  /** Of a line of the worker. */
  readonly line_bytes: number;
  /** Of a result. */
  readonly value_bytes: number;
  /** An error is cut there. */
  readonly error_bytes: number;
  readonly progress_bytes: number;
  /** Follow-ups of a task; a number of them. */
  readonly submit: number;
}

/** They count until claimq has told its own. */
export const LIMITS: Limits = { line_bytes: 8 << 20, value_bytes: 1 << 20, error_bytes: 16 << 10, progress_bytes: 4 << 10, submit: 1_000 };

/**
 * Returns what a handler returned as fields of a message.
 *
 * @throws {TypeError} It is no JSON.
 * @throws {RangeError} It is too large.
 */
export function encodeDone({ result, followUps, steps }: Done, limits: Limits): string {
  let fields = "";
  if (result instanceof Uint8Array) {
    fits("the result", result, limits.value_bytes);
    const bytes = Buffer.from(result.buffer, result.byteOffset, result.byteLength);
    fields += `,"result_payload":"${bytes.toString("base64")}"`;
  } else if (result !== undefined && result !== null) {
    const json = toJson("result", result);
    fits("the result", json, limits.value_bytes);
    fields += `,"result":${json}`;
  }
  if (followUps.length > 0) fields += `,"submit":${toJson("follow-ups", followUps)}`;
  if (steps.length > 0) fields += `,"steps":${toJson("steps", steps)}`;
  return fields;
}

/** Returns progress as JSON. It throws as encodeDone does. */
export function encodeProgress(value: unknown, limits: Limits): string {
  if (value === null) throw new TypeError("progress is null: it must be any other JSON");
  const json = toJson("progress", value);
  fits("progress", json, limits.progress_bytes);
  return json;
}

/** Throws RangeError for what has more bytes. */
export function fits(name: string, value: string | Uint8Array, most: number): void {
  const size = Buffer.byteLength(value);
  if (size > most) throw new RangeError(`${name} has ${size} bytes: at most ${most} are taken`);
}

/**
 * Returns an error cut to that many bytes: its beginning, with the message, and its end, with the
 * location.
 */
export function cut(error: string, most: number): string {
  const data = Buffer.from(error.replaceAll("\0", "\\x00"));
  if (data.length <= most) return data.toString();
  const mark = "\n...\n";
  const head = Math.floor(most / 4);
  let tail = data.length - (most - head - mark.length);
  while ((data[tail] ?? 0) >> 6 === 2) tail++; // within a character
  return new TextDecoder().decode(data.subarray(0, head), { stream: true }) + mark + data.toString("utf8", tail);
}
