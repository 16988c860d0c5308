package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is less than Go's default of 100. Most of the heap are samples and blocks without pointers, so that
// collecting more often costs little: some per cent of the CPU under full load.
const gcPercent = 40

// tuneMemory sets how much garbage may pile up, unless the environment says it (GOGC).
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
