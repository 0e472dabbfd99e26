import type { components, operations } from "./api.js";

type Schemas = components["schemas"];

/** The query of an operation of the API. */
export type Query<Name extends keyof operations> = NonNullable<operations[Name]["parameters"]["query"]>;

/** The body that an operation takes. */
export type Body<Name extends keyof operations> =
  NonNullable<operations[Name]["requestBody"]> extends { content: { "application/json": infer Json } } ? Json : never;

/** The answer of a successful operation. */
export type AnswerOf<Name extends keyof operations> =
  operations[Name]["responses"] extends { 200: { content: { "application/json": infer Json } } } ? Json : never;

/** A task; its result has the type that the task's type says. */
export type Task<Result = unknown> = Omit<Schemas["Task"], "result"> & { result?: Result };
/** A task as an act on it answers; one that was removed has less. */
export type KnownTask = Schemas["KnownTask"];
export type Status = Schemas["Status"];
export type Event = Schemas["Event"];
export type EventName = Schemas["EventName"];
export type Schedule = Schemas["Schedule"];
export type NewSchedule = Schemas["NewSchedule"];
/** One act of a batch. */
export type Op = Schemas["Op"];
/** The result of one act of a batch, a refusal too. */
export type OpResult = Schemas["OpResult"];
/** A type's counts and settings. */
export type TypeInfo = Schemas["Type"];
/** A share: the tasks of a type with the same share_key. */
export type ShareInfo = Schemas["Share"];
export type { components, operations } from "./api.js";
