// The release of main.go in TypeScript.
//
//     claimq work --serve -- node release.ts work
//     node release.ts
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { Client, newStep, newTask, task } from "claimq";
import { handle, Permanent, serve } from "claimq/worker";

const test = task<{ on: "linux" | "mac" }, { passed: number }>("release.test");
const pack = task<Record<string, never>, { passed: number }>("release.pack");
const ship = task<Record<string, never>, { shipped: boolean }>("release.ship");

async function work(): Promise<void> {
  await serve([
    handle(test, {}, ({ on }) => ({ passed: { linux: 40, mac: 2 }[on] })),
    handle(pack, {}, (_, { dependencies }) => {
      const found = Object.values(dependencies) as { passed: number }[];
      return { passed: found.reduce((sum, { passed }) => sum + passed, 0) };
    }),
    handle(ship, {}, (_, { signalValue }) => {
      if (!(signalValue as { approved: boolean }).approved) throw new Permanent("it was not approved");
      return { shipped: true };
    }),
  ]);
}

async function release(): Promise<void> {
  const client = new Client();
  const steps = [
    newStep("linux", newTask(test, { on: "linux" })),
    newStep("mac", newTask(test, { on: "mac" })),
    newStep("pack", newTask(pack, {}), ["linux", "mac"]),
    newStep("ship", newTask(ship, {}, { waitForSignalMs: 86_400_000 }), ["pack"]),
  ];
  const { id } = await client.submit("release", undefined, { steps });
  const ids = Object.fromEntries((await client.get(id)).steps!.map((s) => [s.step, s.id]));
  const packed = await client.wait(ids["pack"]!);
  console.log(`release ${id}: ${JSON.stringify(packed.result)}. Ship it? (y/n)`);
  const input = createInterface({ input: process.stdin });
  const answer = await input.question("");
  input.close();
  await client.signal(ids["ship"]!, { approved: answer === "y" });
  const ended = await client.wait(ids["ship"]!);
  console.log(`${ended.status}: ${ended.result === undefined ? "" : JSON.stringify(ended.result)}${ended.error ?? ""}`);
  client.close();
}

await (process.argv[2] === "work" ? work() : release());
