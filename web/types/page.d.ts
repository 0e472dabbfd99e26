// What parts of the page hand to each other.
import type { get } from "../api.js";
import type { amend } from "../live.js";

declare global {
	/** Texts by name: the query of an address, what is in the fields of a form. */
	type Words = Record<string, string>;
	/** The same of anything: undefined and what is empty are left out. */
	type Query = Record<string, any>;
}

/** A view of the page; every and seldom are its refresh intervals in ms, 0: no automatic refresh. */
export interface View {
	title: (at: { params: Words; query: Words }) => string;
	every: number | ((data: any) => number);
	seldom?: number;
	/** Whose key is for some types chooses one of them first. */
	typed?: boolean;
	load: (loading: Loading) => Promise<any>;
	Body: any;
	tools?: (shown: Shown) => any;
}
export interface Loading {
	params: Words;
	query: Words;
	get: typeof get;
	/** What get answers, without all else. */
	ask: (path: string, query?: Query) => Promise<any>;
	signal: AbortSignal;
	data: any;
	/** Somebody went to the place or asked for it. */
	anew: boolean;
	/** What changes seldom need not be asked for. */
	fresh: boolean;
	amend: typeof amend;
}
export interface Shown {
	data: any;
	params: Words;
	query: Words;
	reload: () => Promise<void>;
}
/** A view among all. role: who may see it; allTypes: not for keys of some types. */
export interface Entry {
	route: string;
	fetch: () => Promise<{ default: View }>;
	view?: View;
	role?: string;
	allTypes?: boolean;
}

/** What this browser keeps of its person's likes. */
export interface Settings {
	theme: "system" | "light" | "dark";
	times: "relative" | "local" | "utc";
	refresh: "auto" | number;
	keys: boolean;
	params: boolean;
}
/** Who has logged in. */
export interface Me {
	name: string;
	roles: string[];
	task_types: string[] | null;
	expires_at?: string;
}
export interface Toast {
	id: number;
	text: string;
	tone?: string;
	href?: string;
	label?: string;
}
export interface Dialog {
	id: number;
	title: string;
	wide?: boolean;
	body: (close: (value?: any) => void) => any;
	done: (value?: any) => void;
}

export interface Answer {
	body: any;
	text: string;
	index: number;
	node: string;
	status: number;
}

/** A column of a table: without cell it shows the field that is its key, by its number or as a time; what is blank is a dash. */
export interface Column<Row> {
	key: string;
	title: string;
	cell?: (row: Row) => any;
	num?: boolean;
	time?: boolean;
	/** The sort key; true: that field, or as onSort defines it. */
	sort?: true | ((row: Row) => number | string);
	main?: boolean;
	wide?: boolean;
	hint?: string;
}
export interface TableProps {
	caption: string;
	rows: any[];
	/** The field that tells rows apart. */
	id: string;
	cols: Column<any>[];
	/** The view that each row leads to, by that field. */
	to?: string;
	/** The key of a column, with - from the most on. Without it the rows stay as they come. */
	sort?: string;
	/** The owner of the rows sorts them, has all of them, and adds more by onMore. */
	onSort?: (key: string) => void;
	all?: number;
	onMore?: () => void;
	limit?: number;
	empty?: any;
	picked?: Set<string | number>;
	onPick?: (picked: Set<string | number>) => void;
	gone?: Set<string | number>;
}

export interface Field {
	name: string;
	label: string;
	type?: string;
	value?: any;
	hint?: any;
	required?: boolean;
	options?: string[] | [string, string][];
	list?: string[];
	placeholder?: string;
	mono?: boolean;
}
export interface Form {
	title: string;
	fields: Field[];
	yes: string;
	intro?: any;
	wide?: boolean;
	danger?: boolean;
	/** The text to type before it is sent. */
	word?: string;
	submit: (values: Record<string, any>) => Promise<any>;
	below?: (values: Record<string, any>) => any;
}

/** A word of a filter. */
export interface Word {
	word: string;
	hint: string;
	many?: boolean;
	values?: string[];
}

export type Action = "retry" | "cancel" | "delete";
/** An act on all tasks that match. */
export interface Many {
	action: Action;
	filter: Record<string, any>;
	what?: string;
	ids?: number[];
}
/** A group of failed tasks. */
export interface Group {
	group: string;
	task_type: string;
	signature: string;
	example: string;
	count: number;
	first_at: string;
	last_at: string;
	ids: number[];
	by_hour: number[];
}

/** A line of a chart; null where nothing is known. */
export interface Line {
	name: string;
	values: (number | null)[];
	tone: 1 | 2 | 3 | 4;
}
export interface ChartProps {
	title: string;
	/** Seconds since 1970. */
	at: number[];
	lines: Line[];
	format: (n: number) => string;
	/** Steps that its axis may have. */
	marks: number[];
	/** The minimum of its range. */
	least: number;
	sentence: string;
}

/** A setting of a type: how it is shown, how it is typed and read. */
export interface Setting {
	name: "max_claimed" | "max_claimed_per_key" | "rate_limit_per_key" | "fair" | "rate_limit" | "delay_ms" | "dead_letter" | "lease_ms" | "max_attempts" | "retention_ms" | "backoff";
	label: string;
	hint: string;
	show: (value: any) => any;
	typed: (value: any) => string;
	read: (text: string) => any;
}
/** The progress of such an action. */
export interface Doing {
	matched: number | null;
	error: any;
	add: string;
	typed: string;
	done: number;
	running: boolean;
	over: string;
	/** Another number than was counted matched. */
	changed: boolean;
	tried: any[] | null;
}
/** What is in a dialog, with what closes it. */
export type Closing<Props> = Props & { close: (done?: any) => void };
/** A button that does something. */
export interface Acting {
	role?: string;
	kind?: string;
	onClick: () => any;
	children?: any;
	disabled?: boolean;
	title?: string;
}
/** The view in sight, with what it shows as of when. */
export interface InSight {
	data: any;
	at: number;
	index: number;
	node: string;
	every: number;
	error: any;
	/** How many changes wait. */
	waiting: number;
	/** The view still shows the previous place. */
	turning: boolean;
}
/** A filter in words; plain tells what a word without a name means, and other says it. */
export interface Filtering {
	query: Words;
	words: Word[];
	plain: (plain: string) => Words;
	onChange: (query: Words) => void;
	label: string;
	other: string;
}
/** Bytes to show: the text of JSON, or any in base64. */
export interface PayloadProps {
	title: string;
	raw?: string;
	base64?: string;
	name: string;
	hidden?: boolean;
}
/** Options of following a stream of events. */
export interface Following {
	signal: AbortSignal;
	lastId?: string;
	onEvent: (event: any, id: string, name: string) => void;
	onOpen?: () => void;
}
/** What wants to be looked at; of the equally bad the largest comes first. */
export interface Wanting {
	tone: string;
	what: string;
	to?: string;
	query?: Query;
	why: string;
	size?: number;
}
