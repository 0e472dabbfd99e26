// What the compiler accepts and refuses of workers: each line that says so must be refused.
import { type StandardSchema, task } from "claimq";
import { Recorder, run } from "claimq/testing";
import { type Context, handle, type Reason, RetryAfter, serve, Snooze } from "claimq/worker";

const mail = task<{ to: string; subject?: string }, { sentTo: string }>("mail");
const tidy = task("tidy");
const month = task("month", {} as StandardSchema<{ month: string }, { month: number }>).returns<number>();

const sendMail = handle(mail, { timeoutMs: 1 }, ({ to, subject }) => ({ sentTo: to + (subject ?? "").trim() }));
const later = handle(month, {}, async ({ month }) => month + 1);
await serve([sendMail, later, handle(tidy, {}, () => {})], { concurrency: 2 });

// @ts-expect-error: the params have no such field
handle(mail, {}, ({ cc }) => ({ sentTo: cc }));
// @ts-expect-error: another result
handle(mail, {}, () => ({ sentTo: 1 }));
// @ts-expect-error: no result
handle(mail, {}, async () => {});
// @ts-expect-error: it is a number, once it is validated
handle(month, {}, ({ month }) => month.length);
// @ts-expect-error: there is no such option
handle(mail, { timeout: 1 }, ({ to }) => ({ sentTo: to }));
// @ts-expect-error: no function
handle(mail, {}, "send");
// @ts-expect-error: a name alone has no types for a handler
handle("mail", {}, () => {});
// @ts-expect-error: a type is not a handler
await serve([mail]);
// @ts-expect-error: milliseconds are a number
new RetryAfter("1s");
// @ts-expect-error
new Snooze(new Date());

handle(tidy, {}, (_, context: Context) => {
  context.followUp(mail, { to: "ada" }, { delayMs: 5 });
  context.followUp("other", 1);
  context.followUp(month, { month: "11" });
  // @ts-expect-error: what is submitted is not what is parsed
  context.followUp(month, { month: 11 });
  // @ts-expect-error: params are missing
  context.followUp(mail);
  // @ts-expect-error: there is no such option
  context.followUp(mail, { to: "ada" }, { delay: 5 });
  // @ts-expect-error: it is no handler's to write
  context.token = 1;
  // @ts-expect-error: there is no such reason
  const reason: Reason = "bored";
  return reason;
});

const outcome = await run(sendMail, { to: "ada" }, { attempt: 2 });
if (outcome.kind === "done") {
  outcome.result.sentTo.trim();
  // @ts-expect-error: there is no such field
  outcome.result.messageId;
}
// @ts-expect-error: it may have failed
outcome.result;
// @ts-expect-error: params are missing
await run(sendMail);
await run(later, { month: "11" });
// @ts-expect-error: what is submitted is not what is parsed
await run(later, { month: 11 });

const recorder = new Recorder();
recorder.assertSubmitted(mail, { to: "ada" });
// @ts-expect-error: it is a string
recorder.assertSubmitted(mail, { to: 1 });
