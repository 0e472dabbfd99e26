// What the page uses of the libraries in web/vendor, for tsc alone.
declare module "*/vendor/preact.mjs" {
  export * from "preact";
}
declare module "*/vendor/htm.mjs" {
  const htm: { bind(h: unknown): (strings: TemplateStringsArray, ...values: any[]) => any };
  export default htm;
}
