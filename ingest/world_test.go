package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"

	"daybook/ingest"
	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table/embedded"
	"daybook/internal/table/tabletest"
	"daybook/keys"
	"daybook/query"
	"daybook/rollup"
)

// world is daybook without its web: the real parts on top of each other, a clock that the test sets, a disk below the
// table that can lose what was not synced, and faults between store and table.
type world struct {
	tb   testing.TB
	now  *clock
	disk *vfs.MemFS // the table's
	wal  string     // the log's folder, on the machine's disk
	edit func(*ingest.Config)
	logs *recorder

	memory  bool // the table is a map: nothing in it waits for anything but the clock
	tables  *embedded.Table
	service *tabletest.FaultyService
	store   *store.Store
	index   *index.Index
	meta    *index.Metadata
	roller  *rollup.Roller
	in      *ingest.Ingester
	reader  *query.Reader
}

// day0 is where the clocks of most tests begin: in the middle of an hour, near the end of a month.
var day0 = time.Date(2026, 10, 28, 12, 30, 0, 0, time.UTC)

const retention = 60 * 24 * time.Hour

// newWorld opens an empty world; edit, if not nil, changes the ingester's configuration.
func newWorld(tb testing.TB, edit func(*ingest.Config)) *world {
	tb.Helper()
	w := &world{tb: tb, now: &clock{at: day0}, disk: vfs.NewCrashableMem(), wal: tb.TempDir(), edit: edit, logs: &recorder{}}
	must(tb, w.open())
	tb.Cleanup(func() { w.abandon() })
	return w
}

func (w *world) open() (err error) {
	ctx, log := context.Background(), slog.New(w.logs)
	if w.memory {
		w.service = tabletest.Faulty(tabletest.NewModel())
	} else {
		w.tables, err = embedded.Open(embedded.Config{Dir: "table", CacheBytes: 1 << 20, Logger: log, FS: w.disk})
		w.service = tabletest.Faulty(w.tables)
	}
	if err != nil {
		return err
	}
	w.store, err = store.Open(ctx, w.service, store.Config{Tables: "daybook", Buckets: 16, Writer: "a", Alone: true}, w.now.day())
	if err != nil {
		return err
	}
	if w.index, err = index.Open(ctx, w.store, keys.MonthOf(w.now.day())-1, 0); err != nil {
		return err
	}
	w.meta = index.NewMetadata()
	if err := w.store.Metadata(ctx, func(one series.Metadata) error { w.meta.Set(one); return nil }); err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	w.roller = rollup.New(rollup.Config{
		CloseAfter: time.Hour, SealAfter: time.Minute, Tick: time.Second, Now: w.now.Now, Logger: log, Registerer: reg,
	}, w.store)
	cfg := ingest.Config{
		Dir: w.wal, Retention: retention, FlushInterval: time.Minute, FlushBytes: 1 << 30, MaxLogBytes: 1 << 30,
		MaxBody: 32 << 20, MaxDecoded: 128 << 20, MaxInFlight: 256 << 20, MaxPerHour: 100_000, MaxExemplars: 100, Seed: 1,
		Metadata: w.meta,
		Now:      w.now.Now, CloseDays: w.roller.CloseDays, Logger: log, Registerer: reg,
	}
	if w.edit != nil {
		w.edit(&cfg)
	}
	if w.in, err = ingest.Open(cfg, w.store, w.index); err != nil {
		return err
	}
	w.reader = query.New(query.Config{
		MaxSamples: 50_000_000, Timeout: time.Minute, Lookback: 5 * time.Minute, MaxConcurrent: 2, MaxChart: 100,
		MaxRows: 1_000_000, Parallel: 2,
		Now: w.now.Now, Logger: log, Registerer: reg,
	}, w.store, w.index, w.in.Head())
	return nil
}

// abandon stops everything without writing anything more down.
func (w *world) abandon() {
	if w.in != nil {
		_ = w.in.Abandon()
		_ = w.tables.Close()
	}
	w.in = nil
}

// restart stops as on SIGTERM, and starts again.
func (w *world) restart() error {
	err := errors.Join(w.in.Close(context.Background()), w.tables.Close())
	w.in = nil
	if err != nil {
		return err
	}
	return w.open()
}

// image is what is on the disks at one moment.
type image struct {
	disk *vfs.MemFS
	wal  string
}

// snapshot is what a power failure now would leave: of the table what was synced and some of what was not.
func (w *world) snapshot(rng *rand.Rand) (image, error) {
	cfg := vfs.CrashCloneCfg{}
	if percent := rng.IntN(3) * 50; percent > 0 {
		cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(rng.Uint64(), 0))}
	}
	im := image{w.disk.CrashClone(cfg), w.tb.TempDir()}
	entries, err := os.ReadDir(w.wal)
	if err != nil {
		return im, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(w.wal, e.Name()))
		if err != nil {
			return im, err
		}
		if err := os.WriteFile(filepath.Join(im.wal, e.Name()), data, 0o666); err != nil {
			return im, err
		}
	}
	return im, nil
}

// crash goes on from an image.
func (w *world) crash(im image) error {
	w.abandon()
	if err := os.RemoveAll(w.wal); err != nil {
		return err
	}
	w.disk, w.wal = im.disk, im.wal
	return w.open()
}

// crashNow pulls the plug.
func (w *world) crashNow(rng *rand.Rand) error {
	im, err := w.snapshot(rng)
	if err != nil {
		return err
	}
	return w.crash(im)
}

func (w *world) flush() error { return w.in.Flush(context.Background()) }

// all gives every sample of a series that there is, as a reader puts them together: pages, then the ring, then the
// head, and of a time that several have the first. Unlike a reader it looks everywhere.
func (w *world) all(id series.ID) ([]series.Sample, error) {
	ctx := context.Background()
	fresh := w.in.Head().Samples(nil, id, -1<<62, 1<<62)
	first, last := series.MillisOf(day0.Add(-retention)).Day()-1, series.MillisOf(day0).Day()+365
	from, to := first.FirstHour(), last.FirstHour()
	var got []series.Sample
	for day := first; day <= last; {
		end := day
		for keys.MonthOf(end+1) == keys.MonthOf(day) && end < last {
			end++
		}
		page, err := theFloats(w.store.Pages(ctx, id, day, end, from, to))
		if err != nil {
			return nil, err
		}
		got, _ = slot.Merge(nil, got, page)
		day = end + 1
	}
	ring, err := theFloats(w.store.Ring(ctx, id, from, to))
	if err != nil {
		return nil, err
	}
	got, _ = slot.Merge(nil, got, ring)
	got, _ = slot.Merge(nil, got, fresh)
	return got, nil
}

// id finds a series by its metric name; tests give each metric one series.
func (w *world) id(metric string) series.ID {
	ls := labels.FromStrings(model.MetricNameLabel, metric, "job", "test")
	return keys.SeriesID("", ls)
}

// write sends samples of one or more series.
func (w *world) write(all ...prompb.TimeSeries) (ingest.Result, error) {
	return w.in.Write(context.Background(), body(all...))
}

// put is write for what must be taken whole.
func (w *world) put(all ...prompb.TimeSeries) {
	w.tb.Helper()
	_, err := w.write(all...)
	must(w.tb, err)
}

// body is a remote write request. prompb leaves out the value -0, taking it for 0, so samples are written here.
func body(all ...prompb.TimeSeries) []byte {
	var request []byte
	for _, ts := range all {
		samples := ts.Samples
		ts.Samples = nil
		field, err := ts.Marshal()
		if err != nil {
			panic(err)
		}
		for _, s := range samples {
			one := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(s.Value))
			one = protowire.AppendVarint(protowire.AppendTag(one, 2, protowire.VarintType), uint64(s.Timestamp))
			field = protowire.AppendBytes(protowire.AppendTag(field, 2, protowire.BytesType), one)
		}
		request = protowire.AppendBytes(protowire.AppendTag(request, 1, protowire.BytesType), field)
	}
	return snappy.Encode(nil, request)
}

// metric makes a series of a request.
func metric(name string, samples ...series.Sample) prompb.TimeSeries {
	return labelled([]string{"__name__", name, "job", "test"}, samples...)
}

func labelled(pairs []string, samples ...series.Sample) (ts prompb.TimeSeries) {
	for i := 0; i < len(pairs); i += 2 {
		ts.Labels = append(ts.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	for _, s := range samples {
		ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: int64(s.T), Value: s.V})
	}
	return ts
}

// clock is what the parts take for the time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *clock) millis() series.Millis { return series.MillisOf(c.Now()) }
func (c *clock) day() series.Day       { return c.millis().Day() }

// recorder is a log handler that keeps what is logged as warning or error.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *recorder) WithGroup(string) slog.Handler                    { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(a slog.Attr) bool { line += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

// with counts the lines that hold a text.
func (r *recorder) with(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
