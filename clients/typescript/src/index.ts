export { Client, type EventFilter, type Submitted, type TaskRef } from "./client.js";
export type { CallOptions } from "./core.js";
export * from "./errors.js";
export type { ClientOptions } from "./settings.js";
export { type Backoff, type NewStep, type NewTask, newStep, newTask, type Params, type StandardSchema, task, type TaskOptions, type TaskType } from "./task.js";
export * from "./types.js";
