package main

import (
	"encoding"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"daybook/internal/table"
	"daybook/keys"
	"daybook/web"
)

// config is config.toml. The file in the repository is its documentation and holds its defaults; a test compares.
type config struct {
	Listen    string          `toml:"listen"`
	DataDir   string          `toml:"data_dir"`
	Log       logConfig       `toml:"log"`
	Table     tableConfig     `toml:"table"`
	Ingest    ingestConfig    `toml:"ingest"`
	WAL       walConfig       `toml:"wal"`
	Flush     flushConfig     `toml:"flush"`
	Retention retentionConfig `toml:"retention"`
	Rollup    rollupConfig    `toml:"rollup"`
	Query     queryConfig     `toml:"query"`
	Web       webConfig       `toml:"web"`
}

type logConfig struct {
	Level  slog.Level `toml:"level"`
	Format string     `toml:"format"`
}

type tableConfig struct {
	Prefix  string `toml:"prefix"`
	Buckets int    `toml:"buckets"`
	Writer  string `toml:"writer"`
	Cache   size   `toml:"cache"`
}

type ingestConfig struct {
	MaxBody           size `toml:"max_body"`
	MaxDecoded        size `toml:"max_decoded"`
	MaxInFlight       size `toml:"max_in_flight"`
	MaxSamplesPerHour int  `toml:"max_samples_per_hour"`
	MaxExemplars      int  `toml:"max_exemplars_per_hour"`
}

type walConfig struct {
	MaxSize     size `toml:"max_size"`
	MinFreeDisk size `toml:"min_free_disk"`
}

type flushConfig struct {
	Interval duration `toml:"interval"`
	WALSize  size     `toml:"wal_size"`
}

type retentionConfig struct {
	Raw duration `toml:"raw"`
}

type rollupConfig struct {
	CloseAfter duration `toml:"close_after"`
	CloseOver  duration `toml:"close_over"`
	SealAfter  duration `toml:"seal_after"`
}

type queryConfig struct {
	MaxSamples       int      `toml:"max_samples"`
	Timeout          duration `toml:"timeout"`
	Lookback         duration `toml:"lookback"`
	MaxConcurrent    int      `toml:"max_concurrent"`
	MaxRows          int      `toml:"max_rows"`
	MaxParallelReads int      `toml:"max_parallel_reads"`
	MaxPastSeries    int      `toml:"max_past_series"`
	MaxChartSeries   int      `toml:"max_chart_series"`
	MaxReadSamples   int      `toml:"max_read_samples"`
	ReadFrame        size     `toml:"read_frame"`
}

type webConfig struct {
	CORSOrigin string `toml:"cors_origin"`
}

func defaults() config {
	const day = 24 * time.Hour
	return config{
		Listen:    "127.0.0.1:9201",
		DataDir:   "./data",
		Log:       logConfig{slog.LevelInfo, "text"},
		Table:     tableConfig{"daybook", 256, "a", 32 * mebi},
		Ingest:    ingestConfig{32 * mebi, 128 * mebi, 256 * mebi, 100_000, 360},
		WAL:       walConfig{4 << 30, 128 * mebi},
		Flush:     flushConfig{duration(5 * time.Minute), 32 * mebi},
		Retention: retentionConfig{duration(5 * 365 * day)},
		Rollup:    rollupConfig{duration(15 * time.Minute), duration(45 * time.Minute), duration(30 * time.Second)},
		Query: queryConfig{
			MaxSamples: 50_000_000, Timeout: duration(2 * time.Minute), Lookback: duration(5 * time.Minute), MaxConcurrent: 20,
			MaxRows: 10_000_000, MaxParallelReads: 4, MaxPastSeries: 1_000_000, MaxChartSeries: 20,
			MaxReadSamples: 50_000_000, ReadFrame: mebi,
		},
		Web: webConfig{".*"},
	}
}

// size is a number of bytes.
type size int64

const mebi size = 1 << 20

var units = []struct {
	suffix string
	bytes  size
}{{"GiB", 1 << 30}, {"MiB", mebi}, {"KiB", 1 << 10}, {"", 1}}

// UnmarshalText reads a number of bytes, with a unit or without.
func (s *size) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(strings.TrimSpace(string(text)), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/int64(u.bytes) {
			break
		}
		*s = size(n) * u.bytes
		return nil
	}
	return fmt.Errorf("%q is not a size: bytes, or a number with KiB, MiB or GiB", text)
}

// String writes the size in the largest unit that it is a multiple of.
func (s size) String() string {
	for _, u := range units {
		if s%u.bytes == 0 && s > 0 {
			return fmt.Sprintf("%d%s", int64(s/u.bytes), u.suffix)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// duration is a length of time, with the units of Prometheus.
type duration time.Duration

// UnmarshalText reads what Prometheus reads: 30s, 1h30m, 90d, 5y.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := model.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a length of time, such as 30s, 5m, 24h, 90d or 5y", text)
	}
	*d = duration(parsed)
	return nil
}

// String writes what UnmarshalText reads.
func (d duration) String() string { return model.Duration(d).String() }

// check says what is wrong with single settings and with how they go together, always in the same order.
func (c *config) check() error {
	var w wrong
	_, _, err := net.SplitHostPort(c.Listen)
	w.refuse(err != nil, "listen", "%q is not an address with a port; say where to listen, such as 127.0.0.1:9201", c.Listen)
	w.refuse(c.DataDir == "", "data_dir", "it is empty; say where to keep the data, such as ./data")
	w.refuse(c.Log.Format != "text" && c.Log.Format != "json", "log.format", "%q is neither text nor json", c.Log.Format)
	prefixOK := regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(c.Table.Prefix) && table.CheckTable(c.Table.Prefix+"raw202601") == nil
	w.refuse(!prefixOK, "table.prefix", "%q is not made of small letters and digits, a letter first, 50 at most", c.Table.Prefix)
	err = keys.Buckets(c.Table.Buckets).Check()
	w.refuse(err != nil, "table.buckets", "%w", err)
	err = keys.CheckWriter(c.Table.Writer)
	w.refuse(err != nil, "table.writer", "%w", err)
	_, err = web.CompileOrigins(c.Web.CORSOrigin)
	w.refuse(err != nil, "web.cors_origin", "it is no regular expression: %w", err)
	c.checkNumbers(&w)
	c.checkTimes(&w)
	return errors.Join(w...)
}

func (c *config) checkNumbers(w *wrong) {
	for _, p := range []struct {
		key   string
		value int64
		least int64
	}{
		{"table.cache", int64(c.Table.Cache), 0},
		{"ingest.max_body", int64(c.Ingest.MaxBody), 1 << 10},
		{"ingest.max_decoded", int64(c.Ingest.MaxDecoded), 1 << 10},
		{"ingest.max_in_flight", int64(c.Ingest.MaxInFlight), 1 << 10},
		{"ingest.max_samples_per_hour", int64(c.Ingest.MaxSamplesPerHour), 1},
		{"ingest.max_exemplars_per_hour", int64(c.Ingest.MaxExemplars), 0},
		{"wal.max_size", int64(c.WAL.MaxSize), 1 << 20},
		{"wal.min_free_disk", int64(c.WAL.MinFreeDisk), 0},
		{"flush.wal_size", int64(c.Flush.WALSize), 1 << 10},
		{"query.max_samples", int64(c.Query.MaxSamples), 1},
		{"query.max_concurrent", int64(c.Query.MaxConcurrent), 1},
		{"query.max_rows", int64(c.Query.MaxRows), 1},
		{"query.max_parallel_reads", int64(c.Query.MaxParallelReads), 1},
		{"query.max_past_series", int64(c.Query.MaxPastSeries), 0},
		{"query.max_chart_series", int64(c.Query.MaxChartSeries), 1},
		{"query.max_read_samples", int64(c.Query.MaxReadSamples), 0},
		{"query.read_frame", int64(c.Query.ReadFrame), 1 << 10},
	} {
		w.refuse(p.value < p.least, p.key, "%d is too small, at least %d is needed", p.value, p.least)
	}
	w.refuse(c.Ingest.MaxBody > maxRequest, "ingest.max_body", "%v is too much, at most %v", c.Ingest.MaxBody, maxRequest)
	w.refuse(c.Ingest.MaxDecoded > maxRequest, "ingest.max_decoded", "%v is too much, at most %v", c.Ingest.MaxDecoded, maxRequest)
	w.refuse(c.Ingest.MaxSamplesPerHour > 100_000, "ingest.max_samples_per_hour", "%d is too much, 100000 is the most that one transaction of the table can take", c.Ingest.MaxSamplesPerHour)
	w.refuse(c.Ingest.MaxExemplars > 1000, "ingest.max_exemplars_per_hour", "%d is too much, at most 1000", c.Ingest.MaxExemplars)
	w.refuse(c.Query.ReadFrame > 1<<30, "query.read_frame", "%v is too much, at most 1GiB", c.Query.ReadFrame)
	w.refuse(c.Flush.WALSize >= c.WAL.MaxSize, "flush.wal_size", "%v is not below wal.max_size, which is %v", c.Flush.WALSize, c.WAL.MaxSize)
}

// maxRequest is what fits into a record of the write-ahead log (256 MiB), even where it must be compressed anew.
const maxRequest = 200 * mebi

func (c *config) checkTimes(w *wrong) {
	for _, p := range []struct {
		key   string
		value duration
	}{
		{"flush.interval", c.Flush.Interval}, {"query.timeout", c.Query.Timeout}, {"query.lookback", c.Query.Lookback},
	} {
		w.refuse(time.Duration(p.value) < time.Second, p.key, "%v is too short, at least 1s is needed", p.value)
	}
	w.refuse(time.Duration(c.Rollup.CloseAfter) > 90*time.Minute, "rollup.close_after", "at most 1h30m: two hours after midnight the ring needs the room")
	w.refuse(time.Duration(c.Rollup.CloseAfter+c.Rollup.CloseOver) > 105*time.Minute, "rollup.close_over", "close_after and close_over together at most 1h45m: two hours after midnight the ring needs the room")
}

// wrong collects what is wrong.
type wrong []error

func (w *wrong) refuse(bad bool, key, format string, args ...any) {
	if bad {
		*w = append(*w, &keyError{key, fmt.Errorf(format, args...)})
	}
}

// keyError is a wrong setting.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string { return e.key + ": " + e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// setting is one key of the config with the place of its value.
type setting struct {
	key   string // flush.interval
	value reflect.Value
}

// settings lists all keys of c.
func settings(c *config) (all []setting) {
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			key := prefix + v.Type().Field(i).Tag.Get("toml")
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(key+".", f)
			} else {
				all = append(all, setting{key, f})
			}
		}
	}
	walk("", reflect.ValueOf(c).Elem())
	return all
}

const envPrefix = "DAYBOOK_"

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// set parses a value from a flag or the environment.
func (s setting) set(text string) error {
	switch v := s.value.Addr().Interface().(type) {
	case *string:
		*v = text
		return nil
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*v = n
		return nil
	case encoding.TextUnmarshaler:
		return v.UnmarshalText([]byte(text))
	}
	return fmt.Errorf("settings of type %v cannot be set", s.value.Type())
}

// setValue sets a value from the file, where numbers are no texts: 300 is no length of time, and "300" no number.
func (s setting) setValue(value any) error {
	kind := s.value.Addr().Interface()
	_, wantsNumber := kind.(*int)
	_, takesNumber := kind.(*size)
	switch v := value.(type) {
	case string:
		if !wantsNumber {
			return s.set(v)
		}
		return fmt.Errorf("%q is not a whole number", v)
	case int64:
		if wantsNumber || takesNumber {
			return s.set(strconv.FormatInt(v, 10))
		}
	}
	if wantsNumber {
		return fmt.Errorf("%v is not a whole number", value)
	}
	return fmt.Errorf("%v is not a text in quotes, such as %q", value, s.String())
}

func (s setting) String() string {
	if level, ok := s.value.Interface().(slog.Level); ok {
		return strings.ToLower(level.String())
	}
	return fmt.Sprint(s.value.Interface())
}

// line is the setting as a line of the settings' file.
func (s setting) line() string {
	if s.value.Type() == reflect.TypeFor[int]() {
		return s.key + " = " + s.String()
	}
	return s.key + " = " + strconv.Quote(s.String())
}

func keysOf(all []setting) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range all {
			if !yield(s.key) {
				return
			}
		}
	}
}

// configFlags adds a flag for each setting, and --config.
func configFlags(flags *pflag.FlagSet) {
	d := defaults()
	flags.String("config", "", "the settings' file, such as config.toml")
	for _, s := range settings(&d) {
		flags.String(s.flag(), s.String(), s.key+" of the settings' file")
	}
}

// loadConfig puts the settings together: defaults, then the file, then the environment ("NAME=value"), then flags. It
// says all that is wrong.
func loadConfig(flags *pflag.FlagSet, environ []string) (config, error) {
	c := defaults()
	path, err := flags.GetString("config")
	if err != nil {
		return c, err
	}
	var text []byte
	if path != "" {
		if text, err = os.ReadFile(path); err != nil {
			return c, fmt.Errorf("reading the settings: %w", err)
		}
	}
	all := settings(&c)
	wrong := fromFile(all, path, text)
	origin := map[string]string{}
	wrong = append(wrong, fromEnvironment(all, environ, origin)...)
	wrong = append(wrong, fromFlags(all, flags, origin)...)
	return c, errors.Join(append(wrong, locate(c.check(), path, text, origin)...)...)
}

func fromEnvironment(all []setting, environ []string, origin map[string]string) (wrong []error) {
	byName := map[string]setting{}
	for _, s := range all {
		byName[s.env()] = s
	}
	for _, pair := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(pair, "=")
		s, known := byName[name]
		switch {
		case known:
			origin[s.key] = "the environment variable " + name
			if err := s.set(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", origin[s.key], s.key, err))
			}
		case strings.HasPrefix(name, envPrefix) && !othersVariable.MatchString(name):
			wrong = append(wrong, fmt.Errorf("the environment variable %s: there is no such setting%s", name, didYouMean(name, maps.Keys(byName))))
		}
	}
	return wrong
}

// othersVariable matches variables that begin like ours and are not: those of daybook's own tests, which start it, and
// those that Kubernetes gives to every container beside a service whose name begins with daybook.
var othersVariable = regexp.MustCompile(`^DAYBOOK_((BIN|SHARED|BROWSER|E2E_.*|CRASH_.*)$|(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$)`)

func fromFlags(all []setting, flags *pflag.FlagSet, origin map[string]string) (wrong []error) {
	for _, s := range all {
		f := flags.Lookup(s.flag())
		if f == nil || !f.Changed {
			continue
		}
		origin[s.key] = "the flag --" + s.flag()
		if err := s.set(f.Value.String()); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", origin[s.key], err))
		}
	}
	return wrong
}
