// Package turn owns the turns of reads: how many of them go on at a time, how many wait, and
// that each key comes by turns. A line rests as long as its reads work, because Raft and the
// requests that change something need the same cores. It knows neither requests nor the state.
package turn
