// What a client needs of Node, Bun and Deno: node:http, which takes a fifth of the time that
// fetch takes in Node, and files.

import { setMaxListeners } from "node:events";
import { readFileSync, statSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { Broken, neverSent, type Reply, type TlsFiles, type Transport, type Try } from "./transport.js";

/** How long a connection, its TLS handshake with it, may take. */
const CONNECT_MAX_MS = 3_000;

/**
 * For how long an idle connection is kept. It is below the server's own bound, so that a request
 * is seldom sent on a connection that the server is just closing.
 */
const IDLE_MAX_MS = 30_000;

/** Bounds the idle connections to one node. */
const IDLE_CONNECTIONS = 64;

/** After how long without traffic the system asks whether the other side is still there. */
const PROBE_AFTER_MS = 4_000;

/** After how long files are looked at again, by the next call. */
const CHECK_EVERY_MS = 1_000;

/** Returns a variable of the environment; undefined if it is not set or empty. */
export function env(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** Lets any number of calls listen to a signal: Node takes more than ten for a leak, and says so. */
export function shared(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

/**
 * Returns a function that reads the API key from a file with one line, and reloads it when it has
 * changed.
 *
 * @throws {Error} The file cannot be read, or has no key or several lines.
 */
export function keyIn(file: string): () => string {
  return renewed([file], () => {
    const key = readFileSync(file, "latin1").trim();
    if (!/^[\x20-\x7e]+$/.test(key)) throw new Error(`API key file ${file}: it must have one line, the key`);
    return key;
  });
}

/**
 * Returns what gets a value that is read from files, and read again when one of them has changed.
 * What cannot be read leaves the value from before in force.
 */
function renewed<T>(files: readonly string[], read: () => T): () => T {
  const look = () => files.map((file) => {
    const s = statSync(file, { throwIfNoEntry: false });
    return s === undefined ? "" : `${s.mtimeMs} ${s.ino} ${s.size}`;
  }).join();
  let stamp = look();
  let value = read();
  let checked = performance.now();
  return () => {
    const now = performance.now();
    if (now - checked < CHECK_EVERY_MS) return value;
    checked = now;
    try {
      const newest = look();
      if (newest !== stamp) [value, stamp] = [read(), newest];
    } catch {
      // It may be half written: it is looked at again.
    }
    return value;
  };
}

/**
 * Returns how requests travel.
 *
 * @throws {Error} A file cannot be read, or is no PEM.
 */
export function transport(files: TlsFiles): Transport {
  const options: http.AgentOptions = {
    keepAlive: true,
    keepAliveMsecs: PROBE_AFTER_MS,
    maxFreeSockets: IDLE_CONNECTIONS,
    timeout: IDLE_MAX_MS,
  };
  const plain = new http.Agent(options);
  const { ca, cert, key } = files;
  const read = (file: string | undefined) => (file === undefined ? undefined : readFileSync(file));
  const named = [ca, cert, key].filter((file) => file !== undefined);
  const secure = renewed(named, () => {
    const pem = { ca: read(ca), cert: read(cert), key: read(key) };
    if (named.length > 0) createSecureContext(pem); // it throws for an invalid certificate
    return new https.Agent({ ...options, ...pem });
  });
  const places = new Map<string, Place>();
  return {
    send(request) {
      let place = places.get(request.base);
      if (place === undefined) {
        if (places.size >= 1_000) places.clear(); // nodes that were named and are gone
        place = placeOf(request.base);
        places.set(request.base, place);
      }
      return send(place, place.secure ? secure() : plain, request);
    },
    distrust(base) {
      const { host, port, secure: tls } = placeOf(base);
      const { freeSockets } = tls ? secure() : plain;
      for (const [name, sockets] of Object.entries(freeSockets)) {
        if (name.startsWith(`${host}:${port}:`)) for (const socket of [...sockets ?? []]) socket.destroy();
      }
    },
    close() {
      for (const agent of [plain, secure()]) {
        agent.maxFreeSockets = 0;
        for (const sockets of Object.values(agent.freeSockets)) for (const socket of [...sockets ?? []]) socket.destroy();
      }
    },
  };
}

/** Where a node is. */
interface Place {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  /** Of all paths. */
  readonly prefix: string;
}

function placeOf(base: string): Place {
  const url = new URL(base);
  const secure = url.protocol === "https:";
  return {
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: Number(url.port) || (secure ? 443 : 80),
    prefix: url.pathname === "/" ? "" : url.pathname,
  };
}

function send(place: Place, agent: http.Agent, { method, path, headers, body, signal }: Try): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { secure, host, port, prefix } = place;
    const request = (secure ? https : http).request({ agent, host, port, method, path: prefix + path, headers });
    let sent = false;
    let connecting: NodeJS.Timeout | undefined;
    const abort = () => request.destroy(signal.reason);
    request.on("socket", (socket: Socket) => {
      if (!socket.connecting) {
        sent = true;
        return;
      }
      connecting = setTimeout(() => request.destroy(new Error("no connection in time")), CONNECT_MAX_MS);
      socket.once(secure ? "secureConnect" : "connect", () => {
        clearTimeout(connecting);
        sent = true;
      });
    });
    request.on("error", (e) => reject(new Broken(e, sent && !neverSent(e))));
    request.on("close", () => {
      clearTimeout(connecting);
      signal.removeEventListener("abort", abort);
    });
    request.on("response", (response) => resolve(new NodeReply(response)));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    request.end(body);
  });
}

class NodeReply implements Reply {
  #response: http.IncomingMessage;

  constructor(response: http.IncomingMessage) {
    this.#response = response;
  }

  get status(): number {
    return this.#response.statusCode ?? 0;
  }

  header(name: string): string {
    const value = this.#response.headers[name];
    return typeof value === "string" ? value : "";
  }

  text(max: number): Promise<string | undefined> {
    const response = this.#response;
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on("data", (part: Buffer) => {
        size += part.length;
        parts.push(part);
        if (size > max) {
          resolve(undefined);
          response.destroy();
        }
      });
      response.on("end", () => resolve(Buffer.concat(parts, size).toString()));
      response.on("error", (e) => reject(new Broken(e, true)));
      response.on("close", () => {
        if (!response.complete) reject(new Broken("the connection ended within the answer", true));
      });
    });
  }

  chunks(): AsyncIterable<Uint8Array> {
    return this.#response;
  }

  cancel(): void {
    this.#response.on("error", () => {}); // it is not asked for any more
    this.#response.destroy();
  }
}
