// The one file that knows preact and htm: markup is made with html`...`.
import { h, render, Component } from "../vendor/preact.mjs";
import htm from "../vendor/htm.mjs";

export const html = htm.bind(h);
export { render, Component };
