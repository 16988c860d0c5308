package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

const shipped = "../../config.toml"

// load puts settings together from the text of a file ("" for none), variables and flags.
func load(t *testing.T, file string, environ []string, args ...string) (config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("daybook", pflag.ContinueOnError)
	configFlags(flags)
	if file != "" {
		name := filepath.Join(t.TempDir(), "c.toml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return loadConfig(flags, environ)
}

// The file in the repository is the documentation: it holds all settings with their defaults.
func TestShippedFile(t *testing.T) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if wrong := fromFile(settings(&c), "config.toml", text); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	if want := defaults(); !reflect.DeepEqual(c, want) {
		t.Errorf("the file says\n%+v\nthe defaults are\n%+v", c, want)
	}
	if err := c.check(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
}

func TestShippedFileSaysAll(t *testing.T) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	documented := map[string]bool{}
	for key, line := range linesOf(text) {
		if !strings.HasPrefix(key, "[") {
			documented[key] = strings.HasPrefix(lines[line-2], "# ")
		}
	}
	var c config
	all := settings(&c)
	for _, s := range all {
		if commented, there := documented[s.key]; !there || !commented {
			t.Errorf("%s: in the file: %v, with a comment before it: %v", s.key, there, commented)
		}
	}
	if len(documented) != len(all) {
		t.Errorf("the file has %d settings, the program %d", len(documented), len(all))
	}
}

// Each setting can be read back from how it is printed, by each way in.
func TestSettingsReadBack(t *testing.T) {
	want := defaults()
	var file strings.Builder
	var environ, args []string
	for _, s := range settings(&want) {
		fmt.Fprintln(&file, s.line())
		environ = append(environ, s.env()+"="+s.String())
		args = append(args, "--"+s.flag()+"="+s.String())
	}
	for name, get := range map[string]func() (config, error){
		"file":        func() (config, error) { return load(t, file.String(), nil) },
		"environment": func() (config, error) { return load(t, "", environ) },
		"flags":       func() (config, error) { return load(t, "", nil, args...) },
	} {
		if got, err := get(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v\nwant\n%+v", name, err, got, want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	const file = "[flush]\ninterval = \"1m\"\n[query]\ntimeout = \"1m\"\n[retention]\nraw = \"1d\"\n"
	environ := []string{"DAYBOOK_FLUSH_INTERVAL=2m", "DAYBOOK_QUERY_TIMEOUT=2m", "PATH=/bin", "DAYBOOK=x"}
	c, err := load(t, file, environ, "--flush.interval=3m")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		from      string
		got, want time.Duration
	}{
		{"the flag", time.Duration(c.Flush.Interval), 3 * time.Minute},
		{"the environment", time.Duration(c.Query.Timeout), 2 * time.Minute},
		{"the file", time.Duration(c.Retention.Raw), 24 * time.Hour},
		{"the defaults", time.Duration(c.Query.Lookback), 5 * time.Minute},
	} {
		if one.got != one.want {
			t.Errorf("%s should win: %v, want %v", one.from, one.got, one.want)
		}
	}
}

// A setting that equals its default counts all the same: it is not passed over for what the file says.
func TestFlagWithDefaultWins(t *testing.T) {
	c, err := load(t, "listen = \"127.0.0.1:1\"\n", nil, "--listen=127.0.0.1:9201")
	if err != nil || c.Listen != "127.0.0.1:9201" {
		t.Error(c.Listen, err)
	}
}

func TestWrongSettings(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		environ []string
		args    []string
		says    []string // one for each line of the message
	}{
		"unknown key": {
			file: "# hello\n[flush]\nintervall = \"1m\"\n",
			says: []string{`c.toml:3: there is no setting "flush.intervall"; did you mean flush.interval?`},
		},
		"unknown table": {
			file: "[flash]\ninterval = \"1m\"\n",
			says: []string{`c.toml:1: there is no setting "flash"`},
		},
		"unknown at the top": {
			file: "port = 9201\n",
			says: []string{`c.toml:1: there is no setting "port"`},
		},
		"several unknown, and wrong ones too": {
			file: "lisen = \"x\"\n[log]\nformat = \"xml\"\nlevl = \"info\"\n",
			says: []string{
				`c.toml:1: there is no setting "lisen"; did you mean listen?`,
				`c.toml:4: there is no setting "log.levl"; did you mean log.level?`,
				`c.toml:3: log.format: "xml" is neither text nor json`,
			},
		},
		"wrong type: text for a number": {
			file: "[table]\nbuckets = \"many\"\n",
			says: []string{`c.toml:2: table.buckets: "many" is not a whole number`},
		},
		"wrong type: a number for text": {
			file: "[table]\nprefix = 5\n",
			says: []string{`c.toml:2: table.prefix: 5 is not a text in quotes`},
		},
		"wrong type: a list": {
			file: "listen = [\"127.0.0.1:1\"]\n",
			says: []string{`c.toml:1: listen: [127.0.0.1:1] is not a text in quotes`},
		},
		"wrong type: a table": {
			file: "[listen]\naddress = \"127.0.0.1:1\"\n",
			says: []string{`c.toml:1: listen: map[address:127.0.0.1:1] is not a text in quotes`},
		},
		"wrong type: text for a table": {
			file: "log = \"info\"\n",
			says: []string{`c.toml:1: there is no setting "log"`},
		},
		"wrong types, several": {
			file: "[query]\nmax_samples = 1.5\ntimeout = true\n[log]\nlevel = 3\n",
			says: []string{
				`c.toml:2: query.max_samples: 1.5 is not a whole number`,
				`c.toml:3: query.timeout: true is not a text in quotes`,
				`c.toml:5: log.level: 3 is not a text in quotes`,
			},
		},
		"a size": {
			file: "[wal]\n\nmax_size = \"4 gigs\"\n",
			says: []string{`c.toml:3: wal.max_size: "4 gigs" is not a size: bytes, or a number with KiB, MiB or GiB`},
		},
		"a size below zero": {
			file: "[wal]\nmin_free_disk = -1\n",
			says: []string{`c.toml:2: wal.min_free_disk: "-1" is not a size`},
		},
		"a size that is no size any more": {
			file: "[wal]\nmax_size = \"9000000000000GiB\"\n",
			says: []string{`c.toml:2: wal.max_size: "9000000000000GiB" is not a size`},
		},
		"a duration": {
			file: "[flush]\ninterval = \"5 minutes\"\n",
			says: []string{`c.toml:2: flush.interval: "5 minutes" is not a length of time, such as 30s`},
		},
		"a duration without unit": {
			file: "[flush]\ninterval = 300\n",
			says: []string{`c.toml:2: flush.interval: 300 is not a text in quotes, such as "5m"`},
		},
		"a log level": {
			file: "[log]\nlevel = \"loud\"\n",
			says: []string{`c.toml:2: log.level: `},
		},
		"no TOML": {
			file: "listen = \n",
			says: []string{`c.toml:1:`},
		},
		"twice": {
			file: "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n",
			says: []string{`c.toml:2:`},
		},
		"out of bounds": {
			file: "listen = \"nowhere\"\ndata_dir = \"\"\n[table]\nprefix = \"Day\"\nbuckets = 100\nwriter = \"A B\"\n" +
				"[ingest]\nmax_body = 1\nmax_decoded = \"1GiB\"\nmax_samples_per_hour = 0\n[query]\nmax_concurrent = -1\ntimeout = \"1ms\"\n" +
				"[rollup]\nclose_after = \"2h\"\nclose_over = \"0s\"\n[web]\ncors_origin = \"(\"\n",
			says: []string{
				`c.toml:1: listen: "nowhere" is not an address with a port`,
				`c.toml:2: data_dir: it is empty`,
				`c.toml:4: table.prefix: "Day"`,
				`c.toml:5: table.buckets: `,
				`c.toml:6: table.writer: `,
				`c.toml:18: web.cors_origin: it is no regular expression`,
				`c.toml:8: ingest.max_body: 1 is too small`,
				`c.toml:10: ingest.max_samples_per_hour: 0 is too small`,
				`c.toml:12: query.max_concurrent: -1 is too small`,
				`c.toml:9: ingest.max_decoded: 1GiB is too much, at most 200MiB`,
				`c.toml:13: query.timeout: 1ms is too short`,
				`c.toml:15: rollup.close_after: at most 1h30m`,
				`c.toml:16: rollup.close_over: `,
			},
		},
		"two that do not go together, one of them by default": {
			file: "wal.max_size = \"1MiB\"\n",
			says: []string{`the defaults: flush.wal_size: 32MiB is not below wal.max_size, which is 1MiB`},
		},
		"dotted keys and tables within a line": {
			file: "log.format = \"xml\"\nquery = { max_samples = 0 }\n",
			says: []string{`c.toml:1: log.format`, `c.toml:2: query.max_samples: 0 is too small`},
		},
		"variables": {
			environ: []string{
				"DAYBOOK_FLUSH_INTERVALL=1m", "DAYBOOK_WAL_MAX_SIZE=lots", "DAYBOOK_QUERY_TIMEOUT=soon", "DAYBOOK_TABLE_BUCKETS=x",
				"DAYBOOK_LOG_FORMAT=xml", "DAYBOOK_CONFIG=c.toml",
			},
			says: []string{
				`the environment variable DAYBOOK_CONFIG: there is no such setting`,
				`the environment variable DAYBOOK_FLUSH_INTERVALL: there is no such setting; did you mean DAYBOOK_FLUSH_INTERVAL?`,
				`the environment variable DAYBOOK_QUERY_TIMEOUT: query.timeout: "soon" is not a length of time`,
				`the environment variable DAYBOOK_TABLE_BUCKETS: table.buckets: "x" is not a whole number`,
				`the environment variable DAYBOOK_WAL_MAX_SIZE: wal.max_size: "lots" is not a size`,
				`the environment variable DAYBOOK_LOG_FORMAT: log.format: "xml" is neither`,
			},
		},
		"flags": {
			args: []string{"--wal.max-size=1TB", "--flush.interval=x", "--log.format=xml", "--query.max-samples=1e6"},
			says: []string{
				`the flag --wal.max-size: "1TB" is not a size`,
				`the flag --flush.interval: "x" is not a length of time`,
				`the flag --query.max-samples: "1e6" is not a whole number`,
				`the flag --log.format: log.format: "xml" is neither`,
			},
		},
		"from everywhere": {
			file:    "[log]\nformat = \"xml\"\n",
			environ: []string{"DAYBOOK_DATA_DIR="},
			args:    []string{"--table.buckets=1"},
			says:    []string{"the environment variable DAYBOOK_DATA_DIR: data_dir", "c.toml:2: log.format", "the flag --table.buckets: table.buckets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, c.file, c.environ, c.args...)
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.says) {
				t.Errorf("%d errors, want %d:\n%v", len(lines), len(c.says), err)
			}
			for i, want := range c.says[:min(len(lines), len(c.says))] {
				if !strings.Contains(lines[i], want) {
					t.Errorf("the message %q does not say %q", lines[i], want)
				}
			}
		})
	}
}

// The same wrong settings are told of in the same order.
func TestErrorsInOrder(t *testing.T) {
	var c config // all of it wrong
	want := c.check().Error()
	for range 20 {
		if got := c.check().Error(); got != want {
			t.Fatalf("once\n%s\nand once\n%s", want, got)
		}
	}
}

func TestNoSuchFile(t *testing.T) {
	_, err := load(t, "", nil, "--config", "nowhere.toml")
	if err == nil || !strings.Contains(err.Error(), "reading the settings") || !strings.Contains(err.Error(), "nowhere.toml") {
		t.Error(err)
	}
}

// Variables of others, that only begin like ours.
func TestVariablesOfOthers(t *testing.T) {
	for name, taken := range map[string]bool{
		"DAYBOOK_BIN": true, "DAYBOOK_SHARED": true, "DAYBOOK_E2E_CACHE": true, "DAYBOOK_CRASH_SEED": true,
		"DAYBOOK_SERVICE_HOST": true, "DAYBOOK_SERVICE_PORT": true, "DAYBOOK_SERVICE_PORT_HTTP": true, "DAYBOOK_PORT": true,
		"DAYBOOK_PORT_9201_TCP": true, "DAYBOOK_PORT_9201_TCP_ADDR": true, "DAYBOOK_READ_SERVICE_HOST": true,
		"DAYBOOK_READ_PORT_9201_UDP_PROTO": true, "DAYBOOKS": true, "daybook_listen": true,
		"DAYBOOK_BINS": false, "DAYBOOK_LISTEN_": false, "DAYBOOK_": false, "DAYBOOK_LISTEN_PORTS": false, "DAYBOOK_REPORT_X": false,
	} {
		if _, err := load(t, "", []string{name + "=tcp://10.0.0.1:9201"}); (err == nil) != taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"0": 0, "1": 1, "1KiB": 1 << 10, "64MiB": 64 << 20, "4 GiB": 4 << 30, " 7 ": 7, "1099511627776": 1 << 40,
		"9223372036854775807": 1<<63 - 1, "8589934591GiB": 8589934591 << 30,
	} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d %v, want %d", text, int64(got), err, int64(want))
		}
		var again size
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q is printed as %v, which is %v %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1MB", "1mib", "0x10", "1_000", "8589934592GiB", "9223372036854775808", "99999999999999999999"} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	c := defaults()
	for word, want := range map[string]string{
		"flush.intervall": "flush.interval", "flush-interval": "flush.interval", "flushinterval": "flush.interval", "FLUSH_INTERVAL": "flush.interval",
		"interval": "", "datadir": "data_dir", "xyz": "", "": "", "lsten": "listen",
	} {
		got := didYouMean(word, keysOf(settings(&c)))
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	for _, d := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if got := distance(d.a, d.b); got != d.want {
			t.Errorf("%q and %q: %d, want %d", d.a, d.b, got, d.want)
		}
	}
}

// The comments of the file speak of units and bounds that the program has, too.
func TestShippedFileComments(t *testing.T) {
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range regexp.MustCompile(`DAYBOOK_[A-Z_]+|--[a-z.-]+`).FindAllString(string(text), -1) {
		if example == "DAYBOOK_" {
			continue
		}
		c := defaults()
		known := false
		for _, s := range settings(&c) {
			known = known || example == s.env() || example == "--"+s.flag()
		}
		if !known {
			t.Errorf("the file speaks of %s, which is no setting", example)
		}
	}
}
