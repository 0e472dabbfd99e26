import { env, keyIn, transport } from "#platform";
import { byFetch, type Transport } from "./transport.js";

/** The default address of a node. */
const DEFAULT_ENDPOINT = "http://127.0.0.1:7400";

const ENDPOINTS_MAX = 100;

/** Options of a client: endpoints and credentials. */
export interface ClientOptions {
  /**
   * Base URLs of nodes, as a list or separated by commas. If they are not given:
   * CLAIMQ_ENDPOINTS, else http://127.0.0.1:7400.
   */
  endpoints?: string | readonly string[];
  /** Sent with every request. If it is not given: CLAIMQ_API_KEY, else apiKeyFile. */
  apiKey?: string;
  /** A file with the key, read again when it changes. If it is not given: CLAIMQ_API_KEY_FILE. */
  apiKeyFile?: string;
  /**
   * PEM of the authorities of https endpoints, read again when it changes. If it is not given:
   * CLAIMQ_CA_FILE, else those of the runtime.
   */
  caFile?: string;
  /** PEM of this client's certificate. If it is not given: CLAIMQ_CERT_FILE. */
  certFile?: string;
  /** PEM of its private key. If it is not given: CLAIMQ_KEY_FILE. */
  keyFile?: string;
  /** How many milliseconds a call may take with its repeats; 30,000 if it is not given. */
  timeoutMs?: number;
  /**
   * Sends the requests, in place of node:http with connections that are kept. For functions that
   * are frozen between requests, as in Lambda: give globalThis.fetch. It goes by the runtime's
   * own authorities: the three files cannot be given with it.
   */
  fetch?: typeof globalThis.fetch;
}

/** The validated settings of a client. */
export interface Settings {
  readonly endpoints: readonly string[];
  readonly key: () => string;
  readonly timeoutMs: number;
  readonly transport: Transport;
}

/**
 * Checks the settings of a client; what is not given comes from the environment.
 *
 * @throws {TypeError} A setting is malformed.
 * @throws {Error} A file cannot be read.
 */
export function settings(options: ClientOptions): Settings {
  const timeoutMs = options.timeoutMs ?? 30_000;
  if (!(timeoutMs > 0)) throw new TypeError(`timeoutMs is ${timeoutMs}: it must be more than 0`);
  return { endpoints: endpoints(options.endpoints), key: key(options), timeoutMs, transport: connections(options) };
}

function endpoints(given: string | readonly string[] = env("CLAIMQ_ENDPOINTS") ?? DEFAULT_ENDPOINT): string[] {
  const list = typeof given === "string" ? given.split(",").map((e) => e.trim()).filter(Boolean) : given;
  if (list.length < 1 || list.length > ENDPOINTS_MAX) {
    throw new TypeError(`endpoints: there are ${list.length}, there must be 1 to ${ENDPOINTS_MAX}`);
  }
  return list.map(endpoint);
}

/** Returns a base URL without a slash at its end. */
function endpoint(given: string): string {
  const wrong = (why: string) => new TypeError(`endpoint ${JSON.stringify(given)}: ${why}`);
  if (!/^https?:\/\//i.test(given)) throw wrong("it must begin with http:// or https://");
  if (!URL.canParse(given)) throw wrong("it is no URL");
  const url = new URL(given);
  if (url.username || url.password || /[?#]/.test(given)) throw wrong("it must have no user, query or fragment");
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function key({ apiKey, apiKeyFile }: ClientOptions): () => string {
  if (apiKey !== undefined && apiKeyFile !== undefined) {
    throw new TypeError("apiKey and apiKeyFile are both given: give one of them");
  }
  const value = apiKey ?? (apiKeyFile === undefined ? env("CLAIMQ_API_KEY") : undefined);
  const file = apiKeyFile ?? (value === undefined ? env("CLAIMQ_API_KEY_FILE") : undefined);
  if (file !== undefined) return keyIn(file);
  if (value !== undefined && !/^[\x20-\x7e]*$/.test(value)) throw new TypeError("apiKey must be of ASCII that is printed");
  return () => value ?? "";
}

function connections({ caFile, certFile, keyFile, fetch }: ClientOptions): Transport {
  if (fetch !== undefined) {
    if (caFile ?? certFile ?? keyFile) throw new TypeError("fetch is given with files: give one or the other");
    return byFetch((input, init) => fetch(input, init));
  }
  const files = {
    ca: caFile ?? env("CLAIMQ_CA_FILE"),
    cert: certFile ?? env("CLAIMQ_CERT_FILE"),
    key: keyFile ?? env("CLAIMQ_KEY_FILE"),
  };
  if (files.key !== undefined && files.cert === undefined) throw new TypeError("keyFile is given without certFile");
  return transport(files);
}
