// How requests travel. `#platform` is platform-node.ts in Node, Bun and Deno, and
// platform-fetch.ts elsewhere.

/** One request to one node. */
export interface Try {
  /** Of the node, as http://127.0.0.1:7400. */
  readonly base: string;
  readonly method: string;
  /** As /api/tasks?limit=10, percent-encoded. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Ends the try, the reading of its answer, too. */
  readonly signal: AbortSignal;
}

/** An answer whose body has not been read. Its body is read, once, or cancelled. */
export interface Reply {
  readonly status: number;
  /** Returns a header by its name in lower case, "" if it is missing. */
  header(name: string): string;
  /** Reads the body; undefined: it has more than max bytes. */
  text(max: number): Promise<string | undefined>;
  /** The body as it comes. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Leaves the body unread. */
  cancel(): void;
}

/** The reason why there is no answer. */
export class Broken extends Error {
  /** Bytes of the request may have left. */
  readonly sent: boolean;

  constructor(cause: unknown, sent: boolean) {
    super(cause instanceof Error ? cause.message || ("code" in cause ? String(cause.code) : cause.name) : String(cause), { cause });
    this.sent = sent;
  }
}

export interface Transport {
  /** Sends a request. It rejects with a Broken if there is no answer. */
  send(request: Try): Promise<Reply>;
  /** Gives up idle connections to a node: one that was in use gave no answer. */
  distrust(base: string): void;
  /** Closes the idle connections; those in use are closed as their calls end. */
  close(): void;
}

/** The files of a client that speaks https: paths of PEM. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** The names of errors that occur before any part of a request was sent. */
const NOT_SENT = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT", // Node
  "ConnectionRefused", "FailedToOpenSocket", // Bun
]);

/**
 * The ends of the TLS alerts with which a server rejects this client's certificate. In TLS 1.3 they
 * arrive instead of an answer, but the server has read nothing.
 */
const UNTRUSTED = /ALERT_(BAD_CERTIFICATE|CERTIFICATE_EXPIRED|CERTIFICATE_REQUIRED|CERTIFICATE_REVOKED|CERTIFICATE_UNKNOWN|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE)$/;

/** Reports whether an error says that nothing of the request has left. */
export function neverSent(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    const code = "code" in e ? String(e.code) : "";
    if (NOT_SENT.has(code) || UNTRUSTED.test(code)) return true;
  }
  return false;
}

/** Sends requests with a fetch function, and keeps no connections. */
export function byFetch(fetch: typeof globalThis.fetch): Transport {
  return {
    async send({ base, path, method, headers, body, signal }) {
      let response: Response;
      try {
        response = await fetch(base + path, { method, headers, body: body ?? null, signal, redirect: "manual" });
      } catch (e) {
        throw new Broken(e, !neverSent(e));
      }
      const chunks = () => response.body ?? new Blob([]).stream();
      return {
        status: response.status,
        header: (name) => response.headers.get(name) ?? "",
        chunks,
        text: (max) => readAll(chunks(), max),
        cancel: () => void response.body?.cancel().catch(() => {}),
      };
    },
    distrust() {},
    close() {},
  };
}

async function readAll(chunks: AsyncIterable<Uint8Array>, max: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > max) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
