#!/bin/bash
# hashicorp/raft-wal v0.4.2: an append that fills a segment seals it, and another goroutine then
# changes to the next one. A log that is closed in between opens again without an error and reads
# all its entries, but takes no more: each append fails with "sealed", after every later start, too.
# So a process that appends one entry and stops in order can leave a node that never writes again.
# claimq finishes the change before raft-wal reads its list of segments (cluster/storage/walmeta.go).
# Source: runRotate and Close in wal.go; the comment there leaves the change to recovery, but Open
# goes on with the sealed segment as its tail.
# Needs Go and its proxy. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
)

func open() *wal.WAL {
	w, err := wal.Open("log", wal.WithSegmentSize(4096))
	if err != nil {
		panic(err)
	}
	return w
}

func main() {
	if err := os.Mkdir("log", 0o700); err != nil {
		panic(err)
	}
	// One entry of 256 bytes for each start, as of a process that does one thing and ends in order.
	entry := func(i uint64) *raft.Log { return &raft.Log{Index: i, Term: 1, Data: make([]byte, 256)} }
	for i := uint64(1); i <= 1000; i++ {
		w := open()
		err := w.StoreLog(entry(i))
		if err := w.Close(); err != nil {
			panic(err)
		}
		if err == nil {
			continue
		}
		fmt.Printf("start %d: append: %v\n", i, err)
		for again := range 3 {
			w := open()
			last, _ := w.LastIndex()
			var log raft.Log
			fmt.Printf("start %d: last entry %d, read: %v, append: %v\n", i+uint64(again)+1, last, w.GetLog(last, &log), w.StoreLog(entry(last+1)))
			w.Close()
		}
		return
	}
	fmt.Println("1,000 starts, each append worked")
}
GO
printf 'module sealed\ngo 1.26\nrequire (\n\tgithub.com/hashicorp/raft v1.7.3\n\tgithub.com/hashicorp/raft-wal v0.4.2\n)\n' >go.mod
go mod tidy >tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go run . 2>log.txt | tee out.txt
[ "$(grep -c 'read: <nil>, append: .*sealed' out.txt)" = 3 ]
echo "seen: as the comment says"
