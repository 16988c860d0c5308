package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/prometheus/common/model"
	"github.com/spf13/pflag"

	"daybook/internal/table"
	"daybook/keys"
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
	MaxSamples     int      `toml:"max_samples"`
	Timeout        duration `toml:"timeout"`
	Lookback       duration `toml:"lookback"`
	MaxConcurrent  int      `toml:"max_concurrent"`
	MaxChartSeries int      `toml:"max_chart_series"`
}

func defaults() config {
	const day = 24 * time.Hour
	return config{
		Listen:    "127.0.0.1:9201",
		DataDir:   "./data",
		Log:       logConfig{slog.LevelInfo, "text"},
		Table:     tableConfig{"daybook", 256, "a", 64 * mebi},
		Ingest:    ingestConfig{32 * mebi, 128 * mebi, 256 * mebi, 100_000},
		WAL:       walConfig{4 << 30, 128 * mebi},
		Flush:     flushConfig{duration(5 * time.Minute), 32 * mebi},
		Retention: retentionConfig{duration(5 * 365 * day)},
		Rollup:    rollupConfig{duration(15 * time.Minute), duration(45 * time.Minute), duration(30 * time.Second)},
		Query:     queryConfig{50_000_000, duration(2 * time.Minute), duration(5 * time.Minute), 20, 20},
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
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 40)
		if err != nil || n < 0 {
			break
		}
		*s = size(n) * u.bytes
		return nil
	}
	return fmt.Errorf("%q is not a size: bytes, or a number with KiB, MiB or GiB", text)
}

// MarshalText writes the size in the largest unit that it is a multiple of.
func (s size) MarshalText() ([]byte, error) {
	for _, u := range units {
		if s%u.bytes == 0 && (s > 0 || u.bytes == 1) {
			return fmt.Appendf(nil, "%d%s", s/u.bytes, u.suffix), nil
		}
	}
	return nil, fmt.Errorf("%d is not a size", s)
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

// MarshalText writes what UnmarshalText reads.
func (d duration) MarshalText() ([]byte, error) { return []byte(model.Duration(d).String()), nil }

// check says what is wrong with single settings and with how they go together.
func (c *config) check() error {
	var wrong []error
	refuse := func(bad bool, key, format string, args ...any) {
		if bad {
			wrong = append(wrong, &keyError{key, fmt.Errorf(format, args...)})
		}
	}
	refuse(c.Listen == "", "listen", "it is empty; say where to listen, such as 127.0.0.1:9201")
	refuse(c.DataDir == "", "data_dir", "it is empty; say where to keep the data, such as ./data")
	refuse(c.Log.Format != "text" && c.Log.Format != "json", "log.format", "%q is neither text nor json", c.Log.Format)
	prefixOK := regexp.MustCompile(`^[a-z][a-z0-9]*$`).MatchString(c.Table.Prefix) && table.CheckTable(c.Table.Prefix+"raw202601") == nil
	refuse(!prefixOK, "table.prefix", "%q is not made of small letters and digits, a letter first, 50 at most", c.Table.Prefix)
	for key, err := range map[string]error{
		"table.buckets": keys.Buckets(c.Table.Buckets).Check(),
		"table.writer":  keys.CheckWriter(c.Table.Writer),
	} {
		refuse(err != nil, key, "%w", err)
	}
	for _, p := range []struct {
		key   string
		value int64
		least int64
	}{
		{"ingest.max_body", int64(c.Ingest.MaxBody), 1 << 10},
		{"ingest.max_decoded", int64(c.Ingest.MaxDecoded), 1 << 10},
		{"ingest.max_in_flight", int64(c.Ingest.MaxInFlight), 1 << 10},
		{"ingest.max_samples_per_hour", int64(c.Ingest.MaxSamplesPerHour), 1},
		{"wal.max_size", int64(c.WAL.MaxSize), 1 << 20},
		{"flush.wal_size", int64(c.Flush.WALSize), 1 << 10},
		{"query.max_samples", int64(c.Query.MaxSamples), 1},
		{"query.max_concurrent", int64(c.Query.MaxConcurrent), 1},
		{"query.max_chart_series", int64(c.Query.MaxChartSeries), 1},
	} {
		refuse(p.value < p.least, p.key, "%d is too small, at least %d is needed", p.value, p.least)
	}
	refuse(c.Ingest.MaxSamplesPerHour > 100_000, "ingest.max_samples_per_hour", "%d is too much, 100000 is the most that one transaction of the table can take", c.Ingest.MaxSamplesPerHour)
	refuse(c.Flush.WALSize >= c.WAL.MaxSize, "flush.wal_size", "it must be below wal.max_size")
	for key, d := range map[string]duration{
		"flush.interval": c.Flush.Interval, "query.timeout": c.Query.Timeout, "query.lookback": c.Query.Lookback,
	} {
		refuse(time.Duration(d) < time.Second, key, "at least 1s is needed")
	}
	refuse(time.Duration(c.Rollup.CloseAfter) > 90*time.Minute, "rollup.close_after", "at most 1h30m: two hours after midnight the ring needs the room")
	refuse(time.Duration(c.Rollup.CloseAfter+c.Rollup.CloseOver) > 105*time.Minute, "rollup.close_over", "close_after and close_over together at most 1h45m: two hours after midnight the ring needs the room")
	return errors.Join(wrong...)
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

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string {
	return "DAYBOOK_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
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
	case interface{ UnmarshalText([]byte) error }:
		return v.UnmarshalText([]byte(text))
	}
	return fmt.Errorf("settings of type %v cannot be set", s.value.Type())
}

func (s setting) String() string {
	if v, ok := s.value.Interface().(interface{ MarshalText() ([]byte, error) }); ok {
		if text, err := v.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(s.value.Interface())
}

// configFlags adds a flag for each setting, and --config.
func configFlags(flags *pflag.FlagSet) {
	d := defaults()
	flags.String("config", "", "the settings' file, such as config.toml")
	for _, s := range settings(&d) {
		flags.String(s.flag(), s.String(), s.key+" of the settings' file")
	}
}

// loadConfig puts the settings together: defaults, then the file, then the environment, then flags.
func loadConfig(flags *pflag.FlagSet, environ func(string) (string, bool)) (config, error) {
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
		if err := decode(path, text, &c); err != nil {
			return c, err
		}
	}
	origin := map[string]string{}
	for _, s := range settings(&c) {
		if value, ok := environ(s.env()); ok {
			if err := s.set(value); err != nil {
				return c, fmt.Errorf("the environment variable %s: %w", s.env(), err)
			}
			origin[s.key] = "the environment variable " + s.env()
		}
		if f := flags.Lookup(s.flag()); f != nil && f.Changed {
			if err := s.set(f.Value.String()); err != nil {
				return c, fmt.Errorf("the flag --%s: %w", s.flag(), err)
			}
			origin[s.key] = "the flag --" + s.flag()
		}
	}
	return c, locate(c.check(), path, text, origin)
}

// decode reads the file strictly. Errors name file, line and key.
func decode(path string, text []byte, c *config) error {
	err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(c)
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		var all []error
		for _, e := range unknown.Errors {
			row, column := e.Position()
			all = append(all, fmt.Errorf("%s:%d:%d: there is no setting %q", path, row, column, strings.Join(e.Key(), ".")))
		}
		return errors.Join(all...)
	case errors.As(err, &wrong):
		row, column := wrong.Position()
		key := strings.Join(wrong.Key(), ".")
		if key == "" {
			key = keyAt(text, row)
		}
		return fmt.Errorf("%s:%d:%d: %s: %s", path, row, column, key, strings.TrimPrefix(wrong.Error(), "toml: "))
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

var (
	tableLine = regexp.MustCompile(`^\s*\[\s*([a-z_]+)\s*\]`)
	keyLine   = regexp.MustCompile(`^\s*([a-z_]+)\s*=`)
)

// eachKey calls f with the line number and the full key of every line that sets one.
func eachKey(text []byte, f func(line int, key string)) {
	prefix := ""
	for i, line := range strings.Split(string(text), "\n") {
		if m := tableLine.FindStringSubmatch(line); m != nil {
			prefix = m[1] + "."
		} else if m := keyLine.FindStringSubmatch(line); m != nil {
			f(i+1, prefix+m[1])
		}
	}
}

func keyAt(text []byte, row int) (key string) {
	eachKey(text, func(line int, k string) {
		if line == row {
			key = k
		}
	})
	return key
}

// locate says for each wrong setting where it was set.
func locate(err error, path string, text []byte, origin map[string]string) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var all []error
	for _, one := range joined.Unwrap() {
		var k *keyError
		if !errors.As(one, &k) {
			all = append(all, one)
			continue
		}
		where := origin[k.key]
		if where == "" {
			where = "the defaults"
			eachKey(text, func(line int, key string) {
				if key == k.key {
					where = fmt.Sprintf("%s:%d", path, line)
				}
			})
		}
		all = append(all, fmt.Errorf("%s: %w", where, one))
	}
	return errors.Join(all...)
}
