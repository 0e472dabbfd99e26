// Package browser tests the page in a real browser: Debian's Chromium, driven by chromedp,
// against three nodes as processes, with keys. In every view it checks that the page does
// not scroll sideways, break the Content-Security-Policy or throw, and is accessible
// (axe-core, from npm with its integrity checked).
//
//	go -C jepsen test ./browser -shots DIR    keeps a screenshot of each view, theme and width
package browser
