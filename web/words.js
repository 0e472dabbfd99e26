// A line of filter words, as "status:failed label:customer:7", read into the query of an address.
/** @import { Word } from "./types/model" */

/** Words of a line; quotes keep spaces together. @param {string} line */
const split = (line) => Array.from(line.matchAll(/(?:[^\s"]|"[^"]*")+/g), ([word]) => word.replaceAll('"', ""));

/**
 * The query that a line adds; what has no word is plain.
 * @param {string} line @param {Word[]} words @param {Words} query @param {(plain: string) => Words} plain
 */
export function read(line, words, query, plain) {
	const out = { ...query };
	for (const part of split(line)) {
		const at = part.indexOf(":"), word = at > 0 && words.find((one) => one.word === part.slice(0, at)), value = part.slice(at + 1);
		if (!word) Object.assign(out, plain(part));
		else if (word.many && out[word.word] && value) out[word.word] = [...new Set([...out[word.word].split("\n"), value])].join("\n");
		else out[word.word] = value;
	}
	return out;
}
