// Package turn gives reads their turns: it bounds how many run and how many wait, and serves keys in turn. A line
// rests for as long as its reads work, because Raft and mutations need the same cores. It knows neither requests nor
// the state.
package turn
