// For tsc alone: what the page uses of web/vendor/htm.mjs.
declare const htm: { bind(h: unknown): (strings: TemplateStringsArray, ...values: any[]) => any };
export default htm;
