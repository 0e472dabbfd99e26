// For tsc alone: what web/vendor/preact.mjs is.
export * from "preact";
