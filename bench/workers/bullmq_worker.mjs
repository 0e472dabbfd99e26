// An empty processor of BullMQ. With `fill N` it adds N jobs in place of working, with
// `lone N` it adds one after the other, each when the last is done, and prints how long each took.
import { Queue, QueueEvents, Worker } from "bullmq";

const connection = { host: "127.0.0.1", port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
// waitUntilFinished throws for a job that is removed when it is done.
const kept = { removeOnComplete: { count: 1000 }, removeOnFail: true };
const [what, count] = [process.argv[2], Number(process.argv[3])];

if (what === "fill") {
  const queue = new Queue("bench", { connection });
  for (let at = 0; at < count; at += 1000) {
    await queue.addBulk(Array.from({ length: Math.min(1000, count - at) }, () => ({ name: "bench", data: {}, opts: kept })));
  }
  await queue.close();
} else if (what === "lone") {
  const queue = new Queue("bench", { connection });
  const events = new QueueEvents("bench", { connection });
  await events.waitUntilReady();
  const took = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    const job = await queue.add("bench", {}, kept);
    await job.waitUntilFinished(events);
    took.push(performance.now() - begun);
  }
  console.log(JSON.stringify(took));
  await events.close();
  await queue.close();
} else {
  const worker = new Worker("bench", async () => {}, { connection, concurrency: 128 });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void worker.close().then(() => process.exit(0)));
}
