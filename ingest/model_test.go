package ingest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"daybook/internal/series"
)

// TestModel does random things to a world: writes in and out of order, flushes, days closed and pages sealed, clocks
// that run and jump, faults of the table, restarts and crashes between any two table operations. All along, what was
// acknowledged is there exactly once with its first value, and nothing else is.
//
// DAYBOOK_MODEL_SEEDS=first:count runs other seeds than the usual ones.
func TestModel(t *testing.T) {
	first, count := seeds(t, 1, 30)
	for seed := first; seed < first+count; seed++ {
		ops := plan(seed, 60)
		err := runModel(t, ops)
		if err == nil {
			continue
		}
		ops, err = shrink(t, ops, err)
		t.Fatalf("seed %d: %v\nafter:\n%s", seed, err, history(ops))
	}
}

func seeds(t *testing.T, first, count uint64) (uint64, uint64) {
	if testing.Short() {
		count = 5
	}
	if s := os.Getenv("DAYBOOK_MODEL_SEEDS"); s != "" {
		if _, err := fmt.Sscanf(s, "%d:%d", &first, &count); err != nil {
			t.Fatal(err)
		}
	}
	return first, count
}

// operation is one thing done. What exactly follows from its own seed and from the world as it is then, so that any
// operation can be left out of a history.
type operation struct {
	name string
	seed uint64
	do   func(*run, *rand.Rand) error
	done string // what was done in the end
}

// operations are all that can be done, the frequent ones several times.
var operations = []operation{
	{name: "live", do: (*run).live}, {name: "live", do: (*run).live}, {name: "live", do: (*run).live},
	{name: "history", do: (*run).history}, {name: "history", do: (*run).history},
	{name: "late", do: (*run).late}, {name: "late", do: (*run).late}, {name: "late", do: (*run).late},
	{name: "edges", do: (*run).edges}, {name: "again", do: (*run).again}, {name: "conflict", do: (*run).conflict},
	{name: "refused", do: (*run).refused},
	{name: "others", do: (*run).others}, {name: "others", do: (*run).others}, {name: "others", do: (*run).others},
	{name: "others again", do: (*run).othersAgain}, {name: "other conflict", do: (*run).otherConflict},
	{name: "flush", do: (*run).flush}, {name: "flush", do: (*run).flush}, {name: "flush", do: (*run).flush},
	{name: "fail", do: (*run).fail}, {name: "fail", do: (*run).fail},
	{name: "minutes", do: (*run).minutes}, {name: "minutes", do: (*run).minutes},
	{name: "hours", do: (*run).hours}, {name: "hours", do: (*run).hours},
	{name: "days", do: (*run).days}, {name: "back", do: (*run).back},
	{name: "close", do: (*run).close}, {name: "seal", do: (*run).seal},
	{name: "restart", do: (*run).restart}, {name: "crash", do: (*run).crash}, {name: "crash amidst", do: (*run).crashAmidst},
	{name: "check", do: (*run).check},
}

func plan(seed uint64, n int) (ops []operation) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range n {
		op := operations[rng.IntN(len(operations))]
		op.seed = rng.Uint64()
		ops = append(ops, op)
	}
	return ops
}

// shrink leaves out operations as long as the history still fails.
func shrink(t *testing.T, ops []operation, failure error) ([]operation, error) {
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops); {
			fewer := slices.Concat(ops[:at], ops[at+size:])
			if err := runModel(t, fewer); err != nil {
				ops, failure = fewer, err
			} else {
				at += size
			}
		}
	}
	_ = runModel(t, ops) // what was done is noted for the last time
	return ops, failure
}

func history(ops []operation) string {
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "  %-12s %s\n", op.name, op.done)
	}
	return b.String()
}

// run is a world and what should be in it.
type run struct {
	*world
	truth     map[string]map[series.Millis]uint64 // by metric: the bits of the first value of each time
	natives   map[string]map[series.Millis]series.Histogram
	examples  map[string][]series.Exemplar
	contested map[contest]bool         // times for which other values were sent as well
	cursor    map[string]series.Millis // where the history of each metric has come to
	latest    time.Time                // that the clock ever showed
	trust     time.Time                // until then the planner looks in the ring for hours that are in pages, see back
	value     float64
	note      string
}

type contest struct {
	metric string
	t      series.Millis
}

var metrics = []string{"m0", "m1", "m2", "m3", "m4"}

func runModel(t *testing.T, ops []operation) error {
	r := &run{world: newWorld(t, nil), truth: map[string]map[series.Millis]uint64{},
		natives: map[string]map[series.Millis]series.Histogram{}, examples: map[string][]series.Exemplar{}, cursor: map[string]series.Millis{}, contested: map[contest]bool{}, latest: day0}
	defer func() {
		r.abandon()
		*r.world = world{} // the test holds on to it, and there are many
	}()
	for i, m := range metrics {
		r.truth[m] = map[series.Millis]uint64{}
		r.natives[m] = map[series.Millis]series.Histogram{}
		r.cursor[m] = r.now.millis() - series.Millis(i+1)*5*series.MillisPerDay
	}
	for i := range ops {
		r.note = ""
		err := ops[i].do(r, rand.New(rand.NewPCG(ops[i].seed, 1)))
		ops[i].done = fmt.Sprintf("%s  [%s]", r.note, r.now.Now().Format("01-02 15:04"))
		if err != nil {
			return fmt.Errorf("%s: %w", ops[i].name, err)
		}
	}
	return r.finish()
}

// finish looks at everything once more, then closes and seals all, and looks again.
func (r *run) finish() error {
	if err := r.check(nil); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if behind := r.latest.Sub(r.now.Now()); behind > 0 {
		r.now.add(behind)
	}
	r.now.add(30 * time.Hour)
	if err := errors.Join(r.flush(nil), r.close(nil), r.seal(nil)); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if n := r.in.Unflushed(); n != 0 {
		return fmt.Errorf("%d samples unflushed after a flush", n)
	}
	if err := r.check(nil); err != nil {
		return fmt.Errorf("when all was closed: %w", err)
	}
	return nil
}
