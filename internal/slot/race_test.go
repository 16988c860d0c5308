//go:build race

package slot

const raceEnabled = true
