// The API's records, by the names that the page uses: from api.d.ts, which is made from api/openapi.yaml.
import type { components, operations } from "./api";
import type { Group } from "./page";

type Schemas = components["schemas"];
export type Task = Schemas["Task"];
export type Step = Schemas["Step"];
export type Attempt = Schemas["Attempt"];
export type FinalizationAttempt = Schemas["FinalizationAttempt"];
export type Backoff = NonNullable<Schemas["Type"]["backoff"]>;
export type Type = Schemas["Type"];
export type Share = Schemas["Share"];
export type Event = Schemas["Event"];
export type Reason = Schemas["Reason"];
export type Schedule = Schemas["Schedule"];
export type JoinToken = Schemas["JoinToken"];
export type Key = Schemas["Key"];
export type Worker = Schemas["Worker"];
export type Node = Schemas["Node"];
export type Room = Node["room"];
export type Filter = Schemas["Filter"];
/** GET /api/types */
export type Types = operations["list_types"]["responses"][200]["content"]["application/json"];
/** GET /api/failures */
export type Failures = operations["list_failures"]["responses"][200]["content"]["application/json"];
/** GET /api/tasks/{id}/why */
export type Reasons = { reasons: Reason[]; ahead: number | null };
/** GET /api/history */
export type History = operations["get_history"]["responses"][200]["content"]["application/json"];
/** GET /api/cluster */
export type Members = { leader: string; term: number; feature_level: number; nodes: Node[]; restore?: { taken: number; bytes: number } };
export type * from "./page";
/** What the view of a task shows; the texts are its bytes. */
export type TaskData =
	| { task: Task; why: Reasons | null; tries: FinalizationAttempt[] | null; events: Event[]; at: number; params?: string; result?: string; progress?: string; signal?: string; missing?: undefined }
	| { missing: true; events: Event[] };
/** What the view of a type shows. */
export type TypeData = { type?: Type; held: Task[]; head?: Task; why: Reasons | null; failed: { failures: Group[]; groups: number }; seen: History; shares: Share[]; last?: Event };
/** What the overview shows: of the types those that wait longest, and those that want to be looked at. */
export type OverviewData = { types: Types; wanting: Types; cluster: Members | null; schedules: Schedule[]; seen: History | null; lately: Failures | null; whys: Record<string, any> };
/** What the view of the cluster shows. */
export type ClusterData = { cluster: Members; events: Event[]; keys: Key[]; tokens: JoinToken[] };
/** What the view of a schedule shows; params is their bytes. */
export type ScheduleData = { schedule?: Schedule; params?: string; steps?: string; task?: Task | null; last: Event[]; next?: string[] };
/** What a form says of when a schedule runs. */
export type Plan = { cron?: string; timezone?: string; every_ms?: number };
/** What the view of a worker shows. */
export type WorkerData = { worker?: Worker; claims: Task[]; events: Event[]; more: boolean };
