// A program as users write it: a strict compiler has nothing to say.

import { Client, type Event, newTask, type StandardSchema, type Status, type Submitted, type Task, task } from "claimq";

const mail = task<{ to: string; subject?: string }, { messageId: string }>("mail");
const tidy = task<void>("tidy");
declare const schema: StandardSchema<{ month: string }, { month: number }>;
const report = task("report", schema).returns<number>();

export async function program(client: Client): Promise<void> {
  const submitted: Submitted<{ messageId: string }> = await client.submit(mail, { to: "ada" }, { delayMs: 5, key: "k", backoff: { initialMs: 1 } });
  const ended: Task<{ messageId: string }> = await client.wait(submitted, { timeoutMs: 5 });
  const id: string | undefined = ended.result?.messageId;
  const status: Status = ended.status;
  console.log(id, status, ended.task_type, ended.error);
  await client.submit(tidy);
  await client.submit(tidy, undefined, { key: "k" });
  await client.submit("any", [1, { a: null }]);
  const month: number | undefined = (await client.wait(await client.submit(report, { month: "11" }))).result;
  console.log(month, (await client.get(7)).result);
  await client.submitMany([newTask(mail, { to: "ada" }), newTask("any")]);
  await client.batch([{ op: "submit", task_type: "a", params: 1 }, { op: "cancel", id: 7 }]);
  for await (const failed of client.tasks({ status: "failed", label: { a: "b" } })) await client.retry(failed.id);
  for await (const event of client.follow({ event: ["submitted"] })) {
    const seen: Event = event;
    console.log(seen.task_id);
  }
}
