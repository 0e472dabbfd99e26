// Command machine measures what a machine gives to a server like claimq. With it, figures from two machines, or from
// two hours on one machine, can be compared:
//
//	go run ./bench/machine --dir .
//
// It prints how many requests per second an empty HTTP handler answers, with the server in one process and 64
// connections from another. It also prints how often per second one file, and three files at once, take 4 KiB and an
// fdatasync. Each figure is the median of three tries of two seconds. It makes its files in --dir and removes them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

const (
	tries    = 3
	tryTime  = 2 * time.Second
	connsAll = 64
)

// serveFlag makes this process the server. Its parent sets it.
const serveFlag = "serve"

func main() {
	dir := flag.String("dir", ".", "folder whose file system is measured")
	serve := flag.Bool(serveFlag, false, "answer requests until standard input ends")
	flag.Parse()
	var err error
	if *serve {
		err = serveEmpty(os.Stdin, os.Stdout)
	} else {
		err = measure(*dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine:", err)
		os.Exit(1)
	}
}

func measure(dir string) error {
	requests, err := median(func() (float64, error) { return requestRate(connsAll, tryTime) })
	if err != nil {
		return fmt.Errorf("empty handler: %w", err)
	}
	fmt.Printf("empty handler   %7.0f requests/s, %d connections\n", requests, connsAll)
	for _, writers := range []int{1, 3} {
		syncs, err := median(func() (float64, error) { return syncRate(dir, writers, tryTime) })
		if err != nil {
			return fmt.Errorf("fdatasync: %w", err)
		}
		fmt.Printf("fdatasync       %7.0f a second, %d at a time\n", syncs, writers)
	}
	return nil
}

// median returns the median rate of the tries.
func median(try func() (float64, error)) (float64, error) {
	rates, errs := make([]float64, tries), make([]error, tries)
	for i := range rates {
		rates[i], errs[i] = try()
	}
	slices.Sort(rates)
	return rates[tries/2], errors.Join(errs...)
}
