// What a client needs of an edge runtime: fetch, and no files.

import { byFetch, type TlsFiles, type Transport } from "./transport.js";

/** Returns a variable of the environment; undefined if it is not set or empty. */
export function env(name: string): string | undefined {
  return globalThis.process?.env?.[name] || undefined;
}

/** Lets any number of calls listen to a signal. */
export function shared(_: AbortSignal): void {}

/** Returns what reads the API key from a file. */
export function keyIn(file: string): () => string {
  throw new TypeError(`apiKeyFile ${file}: there are no files here`);
}

/** Returns how requests travel. */
export function transport(files: TlsFiles): Transport {
  if (files.ca ?? files.cert ?? files.key) throw new TypeError("caFile, certFile and keyFile: there are no files here");
  return byFetch((input, init) => fetch(input, init));
}
