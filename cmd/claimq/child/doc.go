// Package child is what the programs have in common that `claimq work` runs, one for each task or
// one for many: how they are started, what they write, and how they end.
package child
