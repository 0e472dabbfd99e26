// JSON that loses nothing of a value.

/** A value has no JSON that says the same. */
export class NotJson extends TypeError {
  /** Where that is, as params.lines[2]. */
  readonly path: string;
  /** What is wrong there. */
  readonly why: string;

  constructor(path: string, why: string) {
    super(`${path} ${why}`);
    this.path = path;
    this.why = why;
  }
}

/**
 * Returns JSON of a value; name is the beginning of the path in an error. A field that is undefined
 * is left out, as one that is not there.
 *
 * @throws {NotJson} Something in the value is of no kind of JSON, or would become another value:
 *   NaN, undefined in an array, a Map, bytes, an instance of a class without toJSON.
 */
export function toJson(name: string, value: unknown): string {
  let fault: Fault | undefined;
  try {
    const json = JSON.stringify(value) as string | undefined;
    const isText = json !== undefined && !HALF_PAIR.test(json);
    fault = faultOf(value, !isText);
    if (fault === undefined && isText) return json;
  } catch (e) {
    fault = placed(value) ?? { path: "", why: `is no JSON: ${e instanceof Error ? e.message : "its toJSON threw"}` };
  }
  throw new NotJson(name + (fault?.path ?? ""), fault?.why ?? "has half of a surrogate pair, which is no text");
}

/** Half of a surrogate pair, as JSON.stringify writes it: the cluster refuses it. */
const HALF_PAIR = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** What is wrong with a part of a value. */
interface Fault {
  /** Below the value. */
  readonly path: string;
  readonly why: string;
}

/** Returns where a value is at fault that JSON.stringify refuses; undefined if that cannot be said. */
function placed(value: unknown): Fault | undefined {
  try {
    return faultOf(value, true);
  } catch {
    return undefined; // it contains itself, or throws when it is looked at
  }
}

/** Returns the first part of a value that toJson refuses; of texts only if they are to be looked at, too. */
function faultOf(value: unknown, texts: boolean): Fault | undefined {
  switch (typeof value) {
    case "string":
      return texts && HALF_PAIR.test(JSON.stringify(value)) ? { path: "", why: "has half of a surrogate pair, which is no text" } : undefined;
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : { path: "", why: `is ${value}, a number that JSON does not have` };
    case "object":
      break;
    case "undefined":
      return { path: "", why: "is undefined, which JSON does not have" };
    default: // a program may have given BigInt a toJSON
      if (typeof value === "bigint" && "toJSON" in BigInt.prototype) return undefined;
      return { path: "", why: `is a ${typeof value}, which JSON does not have` };
  }
  if (value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = faultOf(value[i], texts);
      if (fault !== undefined) return { path: `[${i}]${fault.path}`, why: fault.why };
    }
    return undefined;
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return faultOfJson(value, texts);
  if (ArrayBuffer.isView(value)) return { path: "", why: "is bytes, which JSON does not have: give them alone, or as text in base64" };
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    return { path: "", why: `is an instance of ${nameOf(value)}, of which JSON would lose what it is: give a plain object` };
  }
  for (const key of Object.keys(value)) {
    const part = (value as Record<string, unknown>)[key];
    if (part === undefined) continue;
    const fault = faultOf(part, texts) ?? (texts ? faultOf(key, true) : undefined);
    if (fault !== undefined) return { path: `.${key}${fault.path}`, why: fault.why };
  }
  return undefined;
}

/** Returns the fault of what an object gives as its JSON. */
function faultOfJson(value: object, texts: boolean): Fault | undefined {
  if (value instanceof Date && Number.isNaN(value.getTime())) return { path: "", why: "is a Date that is none" };
  const json = (value as { toJSON: (key: string) => unknown }).toJSON("");
  // JSON.stringify calls toJSON only once: an object that has one in its result is accepted.
  return typeof json === "object" && json !== null && "toJSON" in json ? undefined : faultOf(json, texts);
}

function nameOf(value: object): string {
  const { constructor } = value as { constructor?: { name?: unknown } };
  return typeof constructor?.name === "string" && constructor.name !== "" ? constructor.name : "a class";
}
