// The original bytes of a part of an answer: JSON.parse would change large integers.

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** Where the value that begins at i ends. @param {string} text @param {number} i */
function end(text, i) {
	const walk = new RegExp(tokens);
	walk.lastIndex = i;
	for (let depth = 0, token; (token = walk.exec(text)); ) {
		if ("{[".includes(token[0])) depth++;
		else if ("}]".includes(token[0])) depth--;
		if (depth <= 0) return walk.lastIndex;
	}
	return text.length;
}

/** The text of the field at names, or undefined. @param {string} text @param {...string} names */
export function rawField(text, ...names) {
	let from = 0;
	for (const name of names) {
		let i = text.indexOf("{", from) + 1, found = false;
		while (i > 0 && !found) {
			while (/[\s,]/.test(text[i])) i++;
			if (text[i] !== '"') return undefined;
			const after = end(text, i);
			found = JSON.parse(text.slice(i, after)) === name;
			i = text.indexOf(":", after) + 1;
			while (/\s/.test(text[i])) i++;
			if (!found) i = end(text, i);
		}
		from = i;
	}
	return text.slice(from, end(text, from));
}

/** The same tokens, each on a line where it helps. @param {string} raw */
export function indent(raw) {
	/** @type {string[]} */
	const out = [];
	let depth = 0, last = "";
	const line = () => "\n" + "  ".repeat(depth);
	for (const [token] of raw.matchAll(tokens)) {
		const opened = last === "{" || last === "[", closing = token === "}" || token === "]";
		if (closing) depth--;
		if (opened !== closing) out.push(line());
		out.push(token === ":" ? ": " : token);
		if (token === "{" || token === "[") depth++;
		if (token === ",") out.push(line());
		last = token;
	}
	return out.join("");
}
