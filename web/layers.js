// Where the steps of a task stand in their drawing.

/** @typedef {{step: string, depends_on: string[]}} Dependent */

/**
 * The steps in layers: each stands in the one after the last of those that it depends on. Names that no step has are passed over.
 * @template {Dependent} T @param {T[]} steps @returns {T[][]}
 */
export function layers(steps) {
	const byName = new Map(steps.map((step) => [step.step, step]));
	/** @type {Map<string, T[]>} */
	const dependents = new Map();
	/** @type {Map<string, number>} */
	const missing = new Map();
	for (const step of steps) {
		const known = step.depends_on.filter((name) => byName.has(name));
		missing.set(step.step, known.length);
		for (const name of known) dependents.set(name, [...(dependents.get(name) ?? []), step]);
	}
	const all = [];
	for (let layer = steps.filter((step) => !missing.get(step.step)); layer.length; ) {
		all.push(layer);
		const free = new Set();
		for (const { step } of layer) {
			for (const next of dependents.get(step) ?? []) {
				const left = (missing.get(next.step) ?? 0) - 1;
				missing.set(next.step, left);
				if (!left) free.add(next);
			}
		}
		layer = steps.filter((step) => free.has(step));
	}
	return all;
}

/**
 * A place in the drawing: of a step, or of an edge that passes a layer on its way to a later one.
 * @template T @typedef {{name: string, step: T|null, from: string[]}} Place from: the places of the layer before that edges come from
 */

/**
 * The layers as columns of places, each in the order of what it hangs on, so that few edges cross. Edges from one step share a place in each layer that they pass.
 * @template {Dependent} T @param {T[]} steps @returns {Place<T>[][]}
 */
export function arranged(steps) {
	const all = layers(steps);
	/** @type {Map<string, number>} */
	const depth = new Map(all.flatMap((layer, i) => layer.map((step) => /** @type {[string, number]} */ ([step.step, i]))));
	/** @type {Map<string, number>} the last layer that an edge of each step goes to */
	const reach = new Map();
	for (const { step, depends_on: on } of steps) for (const name of on) reach.set(name, Math.max(reach.get(name) ?? 0, depth.get(step) ?? 0));
	/** The place in a layer that stands for a step of an earlier one. @param {string} name @param {number} i */
	const standing = (name, i) => (depth.get(name) === i ? name : `${name}\n${i}`);
	/** @type {Map<string, number>} */
	const row = new Map();
	return all.map((layer, i) => {
		/** @type {Place<T>[]} */
		const places = layer.map((step) => ({ name: step.step, step, from: step.depends_on.filter((name) => depth.has(name)).map((name) => standing(name, i - 1)) }));
		for (const [name, last] of reach) if ((depth.get(name) ?? Infinity) < i && last > i) places.push({ name: standing(name, i), step: null, from: [standing(name, i - 1)] });
		const middle = (/** @type {Place<T>} */ { from }) => (from.length ? from.reduce((sum, name) => sum + (row.get(name) ?? 0), 0) / from.length : 0);
		const ordered = places.map((place, at) => ({ place, at, middle: middle(place) })).sort((a, b) => a.middle - b.middle || a.at - b.at).map(({ place }) => place);
		ordered.forEach(({ name }, at) => row.set(name, at - (ordered.length - 1) / 2));
		return ordered;
	});
}
