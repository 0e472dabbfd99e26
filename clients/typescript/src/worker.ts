export type { Done, Failed, Outcome, Snoozed } from "./attempt.js";
export {
  Cancelled,
  type Context,
  handle,
  type HandleOptions,
  type Handler,
  Permanent,
  type Reason,
  RetryAfter,
  type Run,
  Snooze,
} from "./handler.js";
export { ProtocolError, serve, type ServeOptions } from "./serve.js";
