// Package browser has the tests of the page in a real browser: Debian's Chromium, driven by
// chromedp, against three nodes as processes, with keys. What the page must never do is
// looked for in every view: scroll sideways, break the Content-Security-Policy, throw, or be
// of no use to who cannot see it (axe-core, by npm, its integrity checked).
//
//	go test ./web/browser -shots DIR    keeps a screenshot of each view, theme and width
package browser
