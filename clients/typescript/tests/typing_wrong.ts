// Calls that must not compile: the compiler refuses each line that follows such a comment, and
// says so of a comment that is not needed.

import { Client, newTask, type StandardSchema, task } from "claimq";

const mail = task<{ to: string; subject?: string }, { messageId: string }>("mail");
const tidy = task<void>("tidy");
declare const schema: StandardSchema<{ month: string }, { month: number }>;

export async function program(client: Client): Promise<void> {
  // @ts-expect-error
  await client.submit(mail);
  // @ts-expect-error
  await client.submit(mail, { to: 1 });
  // @ts-expect-error
  await client.submit(mail, { to: "ada", body: "x" });
  // @ts-expect-error
  await client.submit(mail, { to: "ada" }, { delay: 1 });
  // @ts-expect-error
  await client.submit(mail, { to: "ada" }, { delayMs: "1 h" });
  // @ts-expect-error
  await client.submit("any", 1, { unique: "always" });
  // @ts-expect-error
  await client.submit(tidy, 1);
  // @ts-expect-error
  newTask(mail, { subject: "x" });
  // @ts-expect-error
  newTask(task("report", schema), { month: 11 });
  // @ts-expect-error
  const id: number | undefined = (await client.wait(await client.submit(mail, { to: "ada" }))).result?.messageId;
  // @ts-expect-error
  await client.get(String(id));
  // @ts-expect-error
  console.log((await client.get(1)).oops);
  // @ts-expect-error
  client.tasks({ status: "broken" });
  // @ts-expect-error
  await client.batch([{ op: "cancels", id: 1 }]);
  // @ts-expect-error
  await client.patch(1, { group: "x" });
  // @ts-expect-error
  new Client({ endpoint: "http://127.0.0.1:7400" });
}
