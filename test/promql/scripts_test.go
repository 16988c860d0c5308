// Package promql runs Prometheus's own test scripts of PromQL (package promql/promqltest, its testdata embedded there)
// against daybook's storage. What it promises is that every script gives the answers that it gives on Prometheus's
// TSDB, wherever what it loads lies by then: in memory, in the table, or read back after a restart. What cannot be so
// is listed with its reason, and the list is exact. Beside that, TestTheClock lets three days go by, and asks daybook and
// the TSDB the same at every time of day; DAYBOOK_PROMQL_SEED makes it other samples and queries.
//
// It is a module of its own, so that the modules which promqltest brings stay out of daybook's.
//
//	cd test/promql && go test -count=1 ./...
package promql

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// variants say where what was loaded lies when it is read.
var variants = map[string]func(*database) error{
	"in memory":                   func(*database) error { return nil },
	"flushed":                     (*database).flush,
	"flushed and restarted":       (*database).restart,
	"read back from the log":      (*database).replay,
	"in pages that were sealed":   (*database).age,
	"in the table and sent again": (*database).resend,
}

// variantKey is the environment variable that tells a process of TestScripts which variant is its own.
const variantKey = "DAYBOOK_PROMQL_VARIANT"

// TestScripts runs the scripts of each variant in a process of its own, as a case that fails cannot be taken back, and
// compares what failed there with the list of what must.
func TestScripts(t *testing.T) {
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectKnown(t, runScripts(t, name))
		})
	}
}

// TestInside is what a process of TestScripts runs.
func TestInside(t *testing.T) {
	then, ok := variants[os.Getenv(variantKey)]
	if !ok {
		t.Skip("it is run by TestScripts, in processes of its own")
	}
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	promqltest.RunBuiltinTestsWithStorage(t, engine, func(tb testing.TB) storage.Storage {
		return newDatabase(tb, then)
	})
}

// report is what a process told of its tests.
type report struct {
	passed int               // cases
	failed map[string]string // what was said of those that failed, by script and line
}

// runScripts runs TestInside in a process of its own.
func runScripts(t *testing.T, variant string) report {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestInside$", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), variantKey+"="+variant)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	tests := readTests(string(out))
	if tests.results["TestInside"] == "" {
		t.Fatalf("the process broke off: %v\n%.4000s\n%s", err, stderr.String(), out[max(0, len(out)-4000):])
	}
	return tests.report()
}

// tests are the results of tests by name, and what each said.
type tests struct {
	results map[string]string // PASS, FAIL
	said    map[string]string
}

var (
	began = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE) +(\S+)$`)
	ended = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+) \([0-9.]+s\)$`)
)

// readTests reads what go test -v prints.
func readTests(out string) tests {
	all := tests{map[string]string{}, map[string]string{}}
	current := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := began.FindStringSubmatch(line); m != nil {
			current = m[1]
		} else if m := ended.FindStringSubmatch(line); m != nil {
			all.results[m[2]] = m[1]
		} else {
			all.said[current] += line + "\n"
		}
	}
	return all
}

// A case's name holds its script and the line, and then the query.
var caseName = regexp.MustCompile(`^TestInside/testdata/([\w-]+\.test)(?:/line_(\d+)/.*)?$`)

// report sums up. A script counts as failed itself only where that was not for one of its cases.
func (all tests) report() report {
	r := report{failed: map[string]string{}}
	because := map[string]bool{} // scripts that have a failed case
	var scripts []string
	for name, result := range all.results {
		m := caseName.FindStringSubmatch(name)
		switch {
		case m == nil:
		case m[2] == "" && result == "FAIL":
			scripts = append(scripts, name)
		case m[2] != "" && result == "PASS":
			r.passed++
		case m[2] != "":
			r.failed[m[1]+":"+m[2]] = all.said[name]
			because[m[1]] = true
		}
	}
	for _, name := range scripts {
		if script := caseName.FindStringSubmatch(name)[1]; !because[script] || strings.Contains(all.said[name], "Error Trace") {
			r.failed[script] = all.said[name]
		}
	}
	return r
}

// expectKnown fails the test unless exactly those cases failed that are listed.
func expectKnown(t *testing.T, got report) {
	t.Helper()
	all, err := promqltest.GetBuiltInExprs()
	if err != nil {
		t.Fatal(err)
	}
	if ran := got.passed + len(got.failed); ran != len(all) {
		t.Errorf("%d cases ran, the scripts have %d", ran, len(all))
	}
	listed := map[string]string{}
	for _, k := range known {
		for _, one := range k.cases {
			listed[one] = k.why
		}
	}
	var unknown []string
	for name := range got.failed {
		if _, ok := listed[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		t.Errorf("%s fails:\n%s", name, got.failed[name])
	}
	for name, why := range listed {
		if _, ok := got.failed[name]; !ok {
			t.Errorf("%s passes, although it is listed as one that cannot (%s): take it off the list", name, why)
		}
	}
	t.Logf("%d cases pass, %d fail that must", got.passed, len(got.failed)-len(unknown))
}
