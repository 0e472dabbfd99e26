// Submits tasks, by the runtime's own transport and by fetch, while nodes are killed, and counts
// what there is.
//
//     load.js COUNT
//
// Each task is submitted with a key. As long as there is an error that is not the task's fault it
// is submitted again with the same key, as docs/producers.md has it. In the end each key has
// exactly one task: nothing is lost, nothing is there twice.

import assert from "node:assert/strict";
import { Client, NotAvailable, OutcomeUnknown, task } from "claimq";

const count = Number(process.argv[2]);
const load = task<{ key: string }>("load");
const again: Record<string, number> = {};
const ids = new Map<string, number>();

async function submitAll(client: Client, keys: string[], atOnce: number): Promise<void> {
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let key = keys.pop(); key !== undefined; key = keys.pop()) {
      for (;;) {
        try {
          const done = await client.submit(load, { key }, { key, timeoutMs: 5_000 });
          assert.ok(!done.differs);
          ids.set(key, done.id);
          break;
        } catch (e) {
          if (!(e instanceof OutcomeUnknown || e instanceof NotAvailable)) throw e;
          again[e.name] = (again[e.name] ?? 0) + 1;
        }
      }
    }
  }));
}

const client = new Client();
const keys = Array.from({ length: count }, (_, i) => `k${i}`);
const stop = new AbortController();
const seen: number[] = [];
const watched = (async () => {
  for await (const event of client.follow({ after: "0.0", task_type: "load", event: ["submitted"] }, stop)) {
    seen.push(event.task_id!);
    if (seen.length === count) return;
  }
})();
watched.catch(() => {}); // it is awaited below
const began = performance.now();
await submitAll(client, keys.slice(0, count / 2), 8);
await submitAll(new Client({ fetch }), keys.slice(count / 2), 20);
const took = performance.now() - began;

const have = new Map<string, number>();
let tasks = 0;
for await (const { id, idempotency_key } of client.tasks({ task_type: "load" })) {
  have.set(idempotency_key!, id);
  tasks++;
}
assert.equal(tasks, count);
assert.deepEqual([...have].sort(), [...ids].sort(), "an id is another key's");
const late = setTimeout(() => stop.abort(new Error(`the stream told of ${seen.length} of ${count} tasks`)), 60_000);
await watched;
clearTimeout(late);
assert.deepEqual(seen, [...ids.values()].sort((a, b) => a - b), "the stream told of each once and in order");
console.log(`${count} submits in ${(took / 1000).toFixed(1)} s, each there once; submitted again: ${JSON.stringify(again)}`);
