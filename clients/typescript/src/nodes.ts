// Decides which node of a cluster gets a client's next request: the leader that a node named, or
// one of the configured endpoints, the last that answered. It sends nothing itself; its caller
// tells it the outcome of each request. This is Go's client/internal/nodes. Times are
// milliseconds of a clock that only goes forward.

/**
 * For how long an address that gave no answer is not asked while another can be: SHUN_MIN_MS,
 * doubled for each time in a row, up to SHUN_MAX_MS.
 */
const SHUN_MIN_MS = 3_000;
const SHUN_MAX_MS = 120_000;

/**
 * For how long the one call that tries such an address keeps the others from it, if it does not
 * say how it went.
 */
const PROBE_MAX_MS = 10_000;

/** Bounds the addresses that something is known of. */
const ADDRESSES_MAX = 256;

interface Address {
  /** It answered since it last gave no answer. */
  answered: boolean;
  /** How often in a row it gave none. */
  failures: number;
  /** One call tries it. */
  probing: boolean;
  /** It is not asked before, while another can be. */
  shunned: number;
  /** The same, as it asked for it. */
  held: number;
}

export class Nodes {
  readonly endpoints: readonly string[];
  /** Index of the endpoint to ask: the last that answered. */
  #current = 0;
  /** Base URL that a node named, and that has answered. */
  #leader = "";
  /** No leader is followed before. */
  #shunUntil = 0;
  #known = new Map<string, Address>();

  /** @param endpoints At least one, each a base URL. */
  constructor(endpoints: readonly string[]) {
    this.endpoints = endpoints;
  }

  /**
   * Returns the base URL to send to, and whether to ask there for the leader's address in place
   * of having the call passed on.
   */
  pick(now: number): [base: string, redirect: boolean] {
    let redirect = now >= this.#shunUntil;
    if (this.#leader && redirect) {
      if (now >= (this.#known.get(this.#leader)?.held ?? 0)) return [this.#leader, true];
      redirect = false; // it would be named again
    }
    this.#current = this.#next(now);
    const base = this.#endpoint();
    const address = this.#known.get(base);
    if (address !== undefined && address.failures > 0) probe(address, now);
    return [base, redirect];
  }

  #endpoint(): string {
    return this.endpoints[this.#current]!;
  }

  /**
   * Returns the first endpoint from the current one on that can be asked, else the one that can
   * be soonest.
   */
  #next(now: number): number {
    let best = this.#current;
    let soonest = Infinity;
    for (let i = 0; i < this.endpoints.length; i++) {
      const index = (this.#current + i) % this.endpoints.length;
      const address = this.#known.get(this.endpoints[index]!);
      const free = address === undefined ? 0 : Math.max(address.shunned, address.held);
      if (now >= free) return index;
      if (free < soonest) [best, soonest] = [index, free];
    }
    return best;
  }

  /**
   * Takes the leader's address as the node at origin named it, and returns the base URL to ask.
   * That is "" if another call finds out at this time whether it can be reached, or has just
   * found that it cannot: then the call is better passed on. It is undefined if the address is of
   * no use.
   */
  follow(origin: string, location: string, now: number): string | undefined {
    let to: URL;
    try {
      to = new URL(location);
    } catch {
      return undefined;
    }
    if (to.protocol !== "http:" && to.protocol !== "https:") return undefined;
    // An API key that was sent encrypted must not be sent in the clear.
    if (origin.startsWith("https://") && to.protocol !== "https:") return undefined;
    if (to.origin === origin) return undefined;
    const address = this.#address(to.origin);
    if (address.answered) return to.origin;
    if (now < address.shunned) {
      if (!address.probing) this.#shunUntil = Math.max(this.#shunUntil, address.shunned);
      return "";
    }
    probe(address, now);
    return to.origin;
  }

  #address(to: string): Address {
    let address = this.#known.get(to);
    if (address === undefined) {
      if (this.#known.size >= ADDRESSES_MAX) this.#known.clear(); // it is all learned again
      address = { answered: false, failures: 0, probing: false, shunned: 0, held: 0 };
      this.#known.set(to, address);
    }
    return address;
  }

  /**
   * Notes that the node at base gave an answer, of any kind. followed says that another
   * named it as the leader.
   */
  answered(base: string, followed: boolean): void {
    if (followed) this.#leader = base;
    const address = this.#address(base);
    if (!address.answered) Object.assign(address, { answered: true, failures: 0, probing: false, shunned: 0 });
  }

  /**
   * Notes that the node at base gave no answer: it is left alone for a while, longer each time in
   * a row.
   */
  silent(base: string, now: number): void {
    const address = this.#address(base);
    if (address.probing || now >= address.shunned) { // else another call has told
      const shun = Math.min(SHUN_MIN_MS * 2 ** address.failures, SHUN_MAX_MS);
      Object.assign(address, { answered: false, failures: address.failures + 1, probing: false, shunned: now + shun });
    }
    this.#leave(base, address.shunned);
  }

  /** Stops following leaders for a while. */
  shun(now: number): void {
    this.#leader = "";
    this.#shunUntil = now + SHUN_MIN_MS;
  }

  /**
   * Notes that the node at base gave no useful answer: a leader is not followed for a while, an
   * endpoint makes way for the next.
   */
  failed(base: string, now: number): void {
    this.#leave(base, now + SHUN_MIN_MS);
  }

  #leave(base: string, until: number): void {
    if (base === this.#leader || !this.endpoints.includes(base)) {
      if (base === this.#leader) this.#leader = "";
      this.#shunUntil = Math.max(this.#shunUntil, until);
    }
    // Many calls may fail on one node at once: they move on by one in all.
    if (base === this.#endpoint()) this.#current = (this.#current + 1) % this.endpoints.length;
  }

  /** Notes that the node at base asks to be left alone. It holds for no other. */
  hold(base: string, ms: number, now: number): void {
    this.#address(base).held = now + ms;
  }

  /** Returns how many milliseconds it is until there is an endpoint that does not ask to be left alone. */
  wait(now: number): number {
    const held = this.endpoints.map((e) => this.#known.get(e)?.held ?? 0);
    return Math.max(Math.min(...held) - now, 0);
  }
}

/** Notes that one call tries the address, so that others leave it alone meanwhile. */
function probe(address: Address, now: number): void {
  if (now >= address.shunned) {
    address.probing = true;
    address.shunned = now + PROBE_MAX_MS;
  }
}
