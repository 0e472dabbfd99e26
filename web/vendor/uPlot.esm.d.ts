// For tsc alone: what web/vendor/uPlot.esm.js is.
import uPlot from "uplot";
export default uPlot;
