// For tsc alone: what the page uses of web/vendor/htm.mjs. What a function in markup is called with is not checked.
type Value = ((...given: any[]) => any) | object | string | number | bigint | boolean | null | undefined;
declare const htm: { bind(h: unknown): (strings: TemplateStringsArray, ...values: Value[]) => any };
export default htm;
