// Package refuse represents failed calls: their codes, texts and details, and how they are appended. Codes with a
// fixed text have it in one table. Refusals of the state machine and errors of the node are worded only here. A
// Refusal belongs to one request, and may be changed until it is appended.
package refuse
