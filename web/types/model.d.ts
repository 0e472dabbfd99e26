// The API's records, by the names that the page uses: from api.d.ts, which is made from api/openapi.yaml.
import type { components, operations } from "./api";

type Schemas = components["schemas"];
export type Task = Schemas["Task"];
export type Step = Schemas["Step"];
export type Attempt = Schemas["Attempt"];
export type FinalizationAttempt = Schemas["FinalizationAttempt"];
export type Backoff = NonNullable<Schemas["Type"]["backoff"]>;
export type Type = Schemas["Type"];
export type Event = Schemas["Event"];
export type Reason = Schemas["Reason"];
export type Schedule = Schemas["Schedule"];
export type JoinToken = Schemas["JoinToken"];
export type Key = Schemas["Key"];
export type Worker = Schemas["Worker"];
export type Node = Schemas["Node"];
export type Filter = Schemas["Filter"];
/** GET /api/types */
export type Types = operations["list_types"]["responses"][200]["content"]["application/json"];
/** GET /api/tasks/{id}/why */
export type Reasons = { reasons: Reason[]; ahead: number | null };
/** GET /api/history */
export type History = operations["get_history"]["responses"][200]["content"]["application/json"];
/** GET /api/cluster */
export type Members = { leader: string; term: number; feature_level: number; nodes: Node[] };
export type * from "./page";
