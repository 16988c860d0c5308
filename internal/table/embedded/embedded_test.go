package embedded_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"daybook/internal/table"
	"daybook/internal/table/embedded"
	"daybook/internal/table/tabletest"
)

func open(t *testing.T, cfg embedded.Config) *embedded.Table {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = "tables"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := embedded.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	tabletest.Run(t, func(t *testing.T) table.Service { return open(t, embedded.Config{FS: vfs.NewMem()}) })
}

func TestDurableOnDisk(t *testing.T) {
	var dir string
	tabletest.RunDurable(t,
		func(t *testing.T) table.Service {
			dir = filepath.Join(t.TempDir(), "new", "tables")
			return open(t, embedded.Config{Dir: dir})
		},
		func(t *testing.T, s table.Service) table.Service {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, embedded.Config{Dir: dir})
		})
}

// After a Sync, a crash that keeps nothing but what was synced keeps everything.
func TestDurableOverACrash(t *testing.T) {
	var fs *vfs.MemFS
	tabletest.RunDurable(t,
		func(t *testing.T) table.Service {
			fs = vfs.NewCrashableMem()
			return open(t, embedded.Config{FS: fs})
		},
		func(t *testing.T, _ table.Service) table.Service {
			fs = fs.CrashClone(vfs.CrashCloneCfg{})
			return open(t, embedded.Config{FS: fs})
		})
}

func TestCloseKeepsAllWithoutSync(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, embedded.Config{FS: fs})
	must(t, s.Create(t.Context(), "one"))
	put(t, s, "one", "5", "r", "v")
	must(t, s.Close())
	s = open(t, embedded.Config{FS: fs.CrashClone(vfs.CrashCloneCfg{})})
	if got := get(t, s, "one", "5", "r"); got != "v" {
		t.Errorf("after Close, the value is %q", got)
	}
}

// A crash at any moment keeps all transactions up to some point in their order, and at least those before the last
// Sync. Memtables are so small that they are full and flushed between Syncs, too.
func TestCrashKeepsAPrefix(t *testing.T) {
	between := 0
	for seed := range uint64(10) {
		if crash(t, seed) {
			between++
		}
	}
	if between == 0 {
		t.Error("no crash kept more than the last Sync and less than all: the test shows nothing")
	}
}

// step is one change to the tables.
type step func(ctx context.Context, s table.Service) error

// crash runs one history; kept says whether the crash kept a part of what came after the last Sync.
func crash(t *testing.T, seed uint64) (kept bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	fs := vfs.NewCrashableMem()
	s := open(t, embedded.Config{FS: fs}.WithMemTable(2<<20))
	history, synced := randomHistory(t, rng, s)
	percent := []int{0, 50, 100}[rng.IntN(3)]
	after := open(t, embedded.Config{FS: fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})})
	must(t, s.Close())

	// Which steps are in it? At least those up to the last Sync, and up to the newest that left its number.
	got, newest := dump(t, after), newestStep(t, after)
	model := tabletest.NewModel()
	n := 0
	for ; n < max(synced, newest); n++ {
		must(t, history[n](t.Context(), model))
	}
	for dump(t, model) != got {
		if n == len(history) {
			t.Fatalf("seed %d: the crash left what no number of steps makes, from %d (the last Sync) and %d (the newest found) to %d",
				seed, synced, newest, len(history))
		}
		must(t, history[n](t.Context(), model))
		n++
	}
	t.Logf("seed %d: %d steps, the last Sync after %d, the crash kept %d", seed, len(history), synced, n)

	// It goes on from there.
	must(t, after.Create(t.Context(), "onward"))
	if n := count(t, after, "onward", "5"); n != 0 {
		t.Errorf("seed %d: a new table has %d rows", seed, n)
	}
	put(t, after, "onward", "5", "r", "v")
	must(t, after.Close())
	return synced < n && n < len(history)
}

var crashTables, crashPartitions = []string{"one", "two", "three"}, []string{"5", "5a"}

// randomHistory makes and does steps; synced is how many there were at the last Sync.
func randomHistory(t *testing.T, rng *rand.Rand, s table.Service) (history []step, synced int) {
	do := func(f step) {
		history = append(history, f)
		must(t, f(t.Context(), s))
	}
	exists := map[string]bool{}
	for range 50 + rng.IntN(150) {
		name := crashTables[rng.IntN(len(crashTables))]
		switch rng.IntN(40) {
		case 0:
			must(t, s.Sync(t.Context()))
			synced = len(history)
			continue
		case 1:
			exists[name] = false
			do(func(ctx context.Context, s table.Service) error { return s.Drop(ctx, name) })
			continue
		}
		if !exists[name] {
			exists[name] = true
			do(func(ctx context.Context, s table.Service) error { return s.Create(ctx, name) })
		}
		partition := crashPartitions[rng.IntN(len(crashPartitions))]
		ops := append(randomOps(rng), merge(stepRow, []byte(strconv.Itoa(len(history)+1))))
		do(func(ctx context.Context, s table.Service) error { return s.Transact(ctx, name, partition, ops) })
	}
	return history, synced
}

// stepRow is where every transaction leaves its number.
const stepRow = "step"

func newestStep(t *testing.T, s table.Service) (newest int) {
	t.Helper()
	for _, name := range crashTables {
		for _, partition := range crashPartitions {
			e, err := s.Get(t.Context(), name, table.Key{Partition: partition, Row: stepRow}, nil)
			if errors.Is(err, table.ErrNotFound) {
				continue
			}
			must(t, err)
			n, err := strconv.Atoi(string(e.Property("d_a")))
			must(t, err)
			newest = max(newest, n)
		}
	}
	return newest
}

// randomOps are operations with large values.
func randomOps(rng *rand.Rand) (ops []table.Operation) {
	for _, row := range rng.Perm(8)[:1+rng.IntN(4)] {
		op := table.Operation{Kind: table.Kind(rng.IntN(3)), Row: fmt.Sprint("row", row)}
		if op.Kind != table.Delete {
			for _, p := range rng.Perm(5)[:1+rng.IntN(4)] {
				value := make([]byte, 8+rng.IntN(table.MaxValue/2))
				binary.BigEndian.PutUint64(value, rng.Uint64())
				op.Properties = append(op.Properties, table.Property{Name: fmt.Sprintf("h%02d_a", p), Value: value})
			}
		}
		ops = append(ops, op)
	}
	return ops
}

// dump writes down all that the tables hold: of each value its length and its beginning, which are random.
func dump(t *testing.T, s table.Service) string {
	t.Helper()
	var b strings.Builder
	have, err := s.Tables(t.Context())
	must(t, err)
	fmt.Fprintln(&b, have)
	for _, name := range crashTables {
		for _, partition := range crashPartitions {
			for _, e := range all(t, s, name, partition) {
				fmt.Fprint(&b, name, " ", e.Key)
				for _, p := range e.Properties {
					fmt.Fprintf(&b, " %s=%d:%x", p.Name, len(p.Value), p.Value[:min(8, len(p.Value))])
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

func TestDroppedTableIsGone(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, embedded.Config{FS: fs})
	fill := func(name string) {
		t.Helper()
		must(t, s.Create(t.Context(), name))
		for _, partition := range []string{"5", "5a", "zz"} {
			for i := range 50 {
				put(t, s, name, partition, fmt.Sprint("row", i), name)
			}
		}
	}
	empty := func(name string) {
		t.Helper()
		for _, partition := range []string{"5", "5a", "zz"} {
			if n := count(t, s, name, partition); n != 0 {
				t.Errorf("partition %s of %s has %d rows", partition, name, n)
			}
		}
	}
	fill("old")
	fill("kept")
	must(t, s.Sync(t.Context()))
	must(t, s.Drop(t.Context(), "old"))
	must(t, s.Create(t.Context(), "new"))
	empty("old")
	empty("new")
	must(t, s.Close())
	s = open(t, embedded.Config{FS: fs})
	empty("old")
	empty("new")
	// The newest table is dropped, and the next one after a restart does not take its number.
	fill("last")
	must(t, s.Drop(t.Context(), "last"))
	must(t, s.Close())
	s = open(t, embedded.Config{FS: fs})
	must(t, s.Create(t.Context(), "next"))
	empty("next")
	if n := count(t, s, "kept", "5a"); n != 50 {
		t.Errorf("the table in between has %d rows", n)
	}
	names, err := s.Tables(t.Context())
	must(t, err)
	if want := []string{"kept", "new", "next"}; !slices.Equal(names, want) {
		t.Errorf("the tables are %q, want %q", names, want)
	}
}

// Compaction loses nothing of its table, and nothing of others.
func TestCompact(t *testing.T) {
	s := open(t, embedded.Config{FS: vfs.NewMem()})
	must(t, s.Create(t.Context(), "one"))
	must(t, s.Create(t.Context(), "two"))
	put(t, s, "two", "5", "r", "v")
	for i := range 5 {
		put(t, s, "one", "5", "r", fmt.Sprint(i))
		put(t, s, "one", "5", fmt.Sprint("r", i), "v")
		must(t, s.Sync(t.Context()))
	}
	must(t, s.Compact(t.Context(), "one"))
	must(t, s.Compact(t.Context(), "none"))
	if n := count(t, s, "one", "5"); n != 6 || get(t, s, "one", "5", "r") != "4" || get(t, s, "two", "5", "r") != "v" {
		t.Errorf("compaction left %d of 6 rows", n)
	}
	if s.DiskBytes() == 0 {
		t.Error("the database takes no room")
	}
}

// Transactions while their table is dropped either come before it or find no table; none is half done.
func TestDropWhileWriting(t *testing.T) {
	s := open(t, embedded.Config{FS: vfs.NewMem()})
	for round := range 20 {
		name := fmt.Sprint("table", round)
		must(t, s.Create(t.Context(), name))
		var wg sync.WaitGroup
		started := make(chan struct{}, 4)
		for partition := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					err := s.Transact(t.Context(), name, fmt.Sprint(partition), []table.Operation{merge(fmt.Sprint(i%10), []byte("v"))})
					if errors.Is(err, table.ErrNotFound) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					if i == 0 {
						started <- struct{}{}
					}
				}
			})
		}
		for range 4 {
			<-started
		}
		must(t, s.Drop(t.Context(), name))
		wg.Wait()
		if n := count(t, s, name, "0"); n != 0 {
			t.Errorf("%d rows of a dropped table", n)
		}
	}
	n, err := s.Orphans()
	must(t, err)
	if n != 0 {
		t.Errorf("%d properties were written to tables after they were dropped", n)
	}
}

// Who reads while others write sees each transaction whole or not at all.
func TestReadersSeeWholeTransactions(t *testing.T) {
	s := open(t, embedded.Config{FS: vfs.NewMem()})
	must(t, s.Create(t.Context(), "one"))
	write := func(value string) error {
		return s.Transact(t.Context(), "one", "5", []table.Operation{merge("a", []byte(value)), merge("b", []byte(value)), merge("c", []byte(value))})
	}
	must(t, write("0"))
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				page, err := s.Query(t.Context(), "one", table.Query{Partition: "5"})
				if err != nil || len(page.Entities) != 3 {
					t.Errorf("%d rows, %v", len(page.Entities), err)
					return
				}
				if a, c := page.Entities[0].Property("d_a"), page.Entities[2].Property("d_a"); string(a) != string(c) {
					t.Errorf("one transaction wrote %s and %s", a, c)
					return
				}
			}
		})
	}
	for i := range 500 {
		must(t, write(fmt.Sprint(i)))
	}
	done.Store(true)
	wg.Wait()
}

// A page of large entities ends before it holds a gigabyte.
func TestPagesOfLargeEntities(t *testing.T) {
	s := open(t, embedded.Config{FS: vfs.NewMem()})
	must(t, s.Create(t.Context(), "one"))
	const n = 40
	for i := range n {
		op := table.Operation{Row: fmt.Sprintf("row%02d", i)}
		for p := range 15 {
			op.Properties = append(op.Properties, table.Property{Name: fmt.Sprintf("p%d", p), Value: make([]byte, table.MaxValue)})
		}
		must(t, s.Transact(t.Context(), "one", "5", []table.Operation{op}))
	}
	q := table.Query{Partition: "5"}
	seen := 0
	for {
		page, err := s.Query(t.Context(), "one", q)
		must(t, err)
		if len(page.Entities) > 10 {
			t.Fatalf("a page of %d entities of a megabyte", len(page.Entities))
		}
		seen += len(page.Entities)
		if q.Token = page.Next; q.Token == "" {
			break
		}
	}
	if seen != n {
		t.Errorf("%d of %d rows", seen, n)
	}
	// What is not asked for does not count.
	page, err := s.Query(t.Context(), "one", table.Query{Partition: "5", Project: []string{"none"}})
	must(t, err)
	if len(page.Entities) != n || page.Next != "" {
		t.Errorf("without properties, a page has %d rows of %d", len(page.Entities), n)
	}
}

// The disk is full: the hook is called, makes room, and the write goes through.
func TestDiskFull(t *testing.T) {
	var full atomic.Bool
	var called atomic.Int32
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpReuseForWrite:
			if full.Load() {
				return syscall.ENOSPC
			}
		}
		return nil
	}))
	s := open(t, embedded.Config{FS: fs, DiskFull: func() {
		called.Add(1)
		full.Store(false)
	}})
	must(t, s.Create(t.Context(), "one"))
	put(t, s, "one", "5", "r", "before")
	must(t, s.Sync(t.Context()))
	if called.Load() != 0 {
		t.Fatal("the hook was called with room left")
	}
	for i := range 3 {
		value := fmt.Sprint("after", i)
		put(t, s, "one", "5", "r", value)
		full.Store(true)
		must(t, s.Sync(t.Context()))
		if got := called.Load(); got != int32(i+1) {
			t.Fatalf("the hook was called %d times, want %d", got, i+1)
		}
		after := open(t, embedded.Config{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
		if got := get(t, after, "one", "5", "r"); got != value {
			t.Errorf("synced on a full disk, the value is %q", got)
		}
	}
}

// While the hook waits for room, reads and writes into memory go on, and a Sync can be given up.
func TestDiskFullForLong(t *testing.T) {
	var full atomic.Bool
	struck, room := make(chan struct{}), make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && full.Load() {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, embedded.Config{FS: fs, DiskFull: func() {
		close(struck)
		<-room
		full.Store(false)
	}})
	must(t, s.Create(t.Context(), "one"))
	put(t, s, "one", "5", "r", "v")
	full.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	synced := make(chan error, 1)
	go func() { synced <- s.Sync(ctx) }()
	<-struck
	put(t, s, "one", "5", "r", "w")
	if got := get(t, s, "one", "5", "r"); got != "w" {
		t.Errorf("while the disk is full, the value is %q", got)
	}
	cancel()
	if err := <-synced; !errors.Is(err, ctx.Err()) {
		t.Errorf("the Sync that was given up: %v", err)
	}
	close(room)
	must(t, s.Sync(t.Context()))
}

// A flush that fails is repeated, not as fast as it goes, and what it should have written is not lost.
func TestFailedFlush(t *testing.T) {
	const failing = 4
	var left, failed atomic.Int32
	mem := vfs.NewCrashableMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") && left.Load() > 0 {
			left.Add(-1)
			failed.Add(1)
			return errors.New("the disk is out of order")
		}
		return nil
	}))
	s := open(t, embedded.Config{FS: fs})
	must(t, s.Create(t.Context(), "one"))
	put(t, s, "one", "5", "r", "v")
	left.Store(failing)
	must(t, s.Sync(t.Context()))
	if failed.Load() != failing {
		t.Fatalf("%d of %d failures", failed.Load(), failing)
	}
	after := open(t, embedded.Config{FS: mem.CrashClone(vfs.CrashCloneCfg{})})
	if got := get(t, after, "one", "5", "r"); got != "v" {
		t.Errorf("synced after failures, the value is %q", got)
	}
}

func TestPause(t *testing.T) {
	if embedded.Pause(0) != 0 {
		t.Error("a flush that did not fail waits")
	}
	var sum time.Duration
	for n := range int32(1000) {
		if embedded.Pause(n+1) < embedded.Pause(n) || embedded.Pause(n) > 5*time.Second {
			t.Fatalf("after %d failures, a flush waits %v", n, embedded.Pause(n))
		}
		if n < 20 {
			sum += embedded.Pause(n)
		}
	}
	if sum < time.Minute/4 {
		t.Errorf("twenty failures take no more than %v", sum)
	}
}
