#!/bin/bash
# robfig/cron v3.0.1 (Go) and cron-parser 5.4.0 (npm): a day of month with a step and a day of
# the week are joined by "or" (`0 0 */2 * 1` runs on each odd day, and on Mondays), where
# claimq wants both. Where clocks jump, robfig leaves out a day
# (30 2 * * * on the last Sunday of March in Prague) and runs twice in October; cron-parser
# runs at half past three in March.
# It matters to users of claimq who move schedules from them: docs/protocol.md has the table.
# Needs Go, npm and their registries. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

func main() {
	after := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, e := range []string{"0 0 */2 * 1", "0 0 13 * 5", "0 0 1/2 * *"} {
		show(e, after, 5)
	}
	prague, _ := time.LoadLocation("Europe/Prague")
	show("30 2 * * *", time.Date(2026, 3, 28, 12, 0, 0, 0, prague), 2)
	show("30 2 * * *", time.Date(2026, 10, 24, 12, 0, 0, 0, prague), 2)
}

func show(e string, at time.Time, n int) {
	s, err := cron.ParseStandard(e)
	if err != nil {
		fmt.Printf("%s: %v\n", e, err)
		return
	}
	fmt.Printf("%s:", e)
	for range n {
		at = s.Next(at)
		fmt.Print(" ", at.Format("01-02T15:04-0700"))
	}
	fmt.Println()
}
GO
printf 'module robfig\ngo 1.26\nrequire github.com/robfig/cron/v3 v3.0.1\n' >go.mod
go mod tidy >/dev/null 2>&1
echo "robfig/cron v3.0.1"
go run . | tee robfig.txt
cat >main.js <<'JS'
const { CronExpressionParser: P } = require("cron-parser");
const show = (e, from, tz, n) => { try { const i = P.parse(e, { currentDate: from, tz }); let o = e + ":"; for (let k = 0; k < n; k++) o += " " + i.next().toISOString(); console.log(o); } catch (x) { console.log(e + ": " + x.message); } };
for (const e of ["0 0 */2 * 1", "0 0 13 * 5", "0 0 1/2 * *"]) show(e, "2026-11-30T00:00:00Z", "UTC", 5);
show("30 2 * * *", "2026-03-28T12:00:00+01:00", "Europe/Prague", 2);
show("30 2 * * *", "2026-10-24T12:00:00+02:00", "Europe/Prague", 2);
JS
npm install --silent --no-audit --no-fund cron-parser@5.4.0
echo "cron-parser 5.4.0"
node main.js | tee parser.txt
grep -q '^0 0 \*/2 \* 1: 12-01.* 12-03.* 12-05' robfig.txt
grep -q '^30 2 \* \* \*: 03-30T02:30+0200' robfig.txt
grep -q '^30 2 \* \* \*: 10-25T02:30+0200 10-25T02:30+0100' robfig.txt
grep -q '^0 0 \*/2 \* 1: 2026-12-01.* 2026-12-03.* 2026-12-05' parser.txt
grep -q '^30 2 \* \* \*: 2026-03-29T01:30' parser.txt
echo "seen: as the comment says"
