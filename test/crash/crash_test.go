// Package crash holds the tests that end the real daybook in every way that a machine can: SIGKILL in the middle of
// whatever it does, a log cut short or with a damaged byte, a disk that is full. It exists because the first promise of
// daybook (acknowledged means durable) cannot be seen from within its process.
//
// Each test keeps a ledger of what it sent and of what was acknowledged; after each restart everything is read back
// over HTTP and compared, bit for bit. What happens is drawn from a seed, which a failed test names:
//
//	DAYBOOK_CRASH_SEED=n      the same draws again (not the same schedule)
//	DAYBOOK_CRASH_ROUNDS=n    how many rounds of TestKillNine (20)
//	DAYBOOK_CRASH_RACE=1      build daybook with the race detector
//	DAYBOOK_BIN=path          test this program instead of building one
package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// program is the daybook under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if program = os.Getenv("DAYBOOK_BIN"); program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "daybook-crash")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the program:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "daybook")
	build, cgo := []string{"build", "-o", program}, "CGO_ENABLED=0"
	if os.Getenv("DAYBOOK_CRASH_RACE") == "1" {
		build, cgo = append(build, "-race"), "CGO_ENABLED=1"
	}
	cmd := exec.Command("go", append(build, "daybook/cmd/daybook")...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building daybook: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// dice gives the random numbers of a test, and names their seed.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	if text := os.Getenv("DAYBOOK_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("DAYBOOK_CRASH_SEED: %v", err)
		}
	}
	t.Logf("DAYBOOK_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// spawn gives random numbers for one goroutine.
func spawn(r *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }

// await looks again and again until check gives nil, and fails the test when that takes too long.
func await(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, within, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
