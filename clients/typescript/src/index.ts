export * from "./errors.js";
export * from "./task.js";
