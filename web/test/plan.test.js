import assert from "node:assert/strict";
import { test } from "node:test";
import { cronWords } from "../plan.js";

const cases = {
	"0 6 * * 1-5": "at 06:00 on Monday to Friday",
	"30 2 * * *": "at 02:30 every day",
	"*/15 * * * *": "every 15 minutes",
	"*/10 8-17 * * MON-FRI": "every 10 minutes from 08:00 to 17:59 on Monday to Friday",
	"0 * * * *": "every hour",
	"@hourly": "every hour",
	"5,35 * * * *": "5 and 35 minutes past every hour",
	"0 */6 * * *": "every 6 hours",
	"15 */6 * * *": "15 minutes past every 6th hour",
	"0 6,18 * * *": "at 06:00 and 18:00 every day",
	"0 23 L * *": "at 23:00 on the last day of the month",
	"0 9 15W * ?": "at 09:00 on the working day nearest to the 15th of the month",
	"0 9 * * 5L": "at 09:00 on the last Friday of the month",
	"0 9 * * 1#2": "at 09:00 on the second Monday of the month",
	"0 0 1 1 *": "at 00:00 on the 1st of January",
	"0 0 * JAN,JUL 0": "at 00:00 on Sunday in January and July",
	"0 0 1,15 * 3": "at 00:00 on the 1st and the 15th of the month or on Wednesday",
	"* * * * *": "every minute",
};

test("cron expressions in words", () => {
	for (const [cron, words] of Object.entries(cases)) assert.equal(cronWords(cron), words, cron);
});

test("what has no plain words has none", () => {
	for (const cron of ["", "0 0", "1-59/7 * * * *", "0 0 32 13 *", "0 0 * 13 *", "0 25 * * *", "@never", "0 0 * * 5-", "0 0 * * <script>", "0,".repeat(100) + "0 * * * *"]) assert.equal(cronWords(cron), "", cron);
});
