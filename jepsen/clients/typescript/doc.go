// Package typescript holds the TypeScript client, the npm package claimq, to the server of its
// commit: its test builds the package and runs its tests. The client itself is in clients/typescript.
package typescript
