// Package layers checks what docs and design say of how the packages of daybook stand on each other. The tables in
// this file are the architecture: a package that is in none of them fails the test, and so does an import that goes
// up or sideways.
package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "daybook"

// layers are the packages from the top to the bottom. A package imports only from layers below its own: what stands
// side by side does not know of each other.
var layers = [][]string{
	// The program: flags and config.toml into the Config of each part, and the parts into each other.
	{"cmd/daybook"},
	// HTTP in, HTTP out.
	{"web"},
	// The three verbs.
	{"ingest", "rollup", "query"},
	// What the verbs stand on.
	{"ingest/wal"},
	{"internal/store", "internal/index", "internal/table/embedded", "internal/table/azure", "internal/table/tabletest"},
	// Names, bytes, and what a table is.
	{"keys", "internal/slot", "internal/table"},
	// The vocabulary.
	{"internal/series"},
	// The machine's directory: a leaf, for cmd.
	{"internal/datadir"},
}

// onlyFor are packages, ours or others', that a few packages only may import; "" for none but tests.
var onlyFor = map[string][]string{
	"internal/table/tabletest": {""},
	"internal/table/embedded":  {"cmd/daybook"},
	"internal/table/azure":     {"cmd/daybook"},
	"internal/datadir":         {"cmd/daybook"},
	"ingest/wal":               {"ingest", "cmd/daybook"},

	"github.com/Azure/":             {"internal/table/azure"},
	"github.com/labstack/":          {"web"},
	"github.com/cockroachdb/pebble": {"internal/table/embedded"},
	"testing":                       {"internal/table/tabletest"},
	"flag":                          {"cmd/daybook"},
}

// testsOnly are folders that hold tests and nothing else; nothing stands on them.
var testsOnly = []string{"test/"}

// A pkg is what the test knows of a package.
type pkg struct {
	path    string   // below the module
	imports []string // without those of its tests
	doc     bool
	code    bool // it has files that are not tests
}

func TestLayers(t *testing.T) {
	packages := read(t, filepath.Join("..", ".."))
	if len(packages) < 5 {
		t.Fatalf("only %d packages found", len(packages))
	}
	for _, complaint := range check(packages) {
		t.Error(complaint)
	}
}

// check gives all that is wrong.
func check(packages []pkg) (complaints []string) {
	complain := func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) }
	for _, p := range packages {
		if !p.doc {
			complain("%s has no comment that says why it is there", p.path)
		}
		if !p.code && slices.ContainsFunc(testsOnly, func(dir string) bool { return strings.HasPrefix(p.path, dir) }) {
			continue
		}
		layer := layerOf(p.path)
		if layer < 0 {
			complain("%s is in no layer: say where it belongs", p.path)
			continue
		}
		for _, imported := range p.imports {
			own, ours := strings.CutPrefix(imported, module+"/")
			if ours && layerOf(own) <= layer {
				complain("%s imports %s, which is not in a layer below", p.path, own)
			}
			for restricted, users := range onlyFor {
				if (own == restricted || strings.HasPrefix(own, strings.TrimSuffix(restricted, "/")+"/")) && !slices.Contains(users, p.path) {
					complain("%s imports %s, which is only for %s", p.path, own, strings.Join(users, ", "))
				}
			}
		}
	}
	return complaints
}

// layerOf is the number of a package's layer, and -1 where it has none.
func layerOf(path string) int {
	return slices.IndexFunc(layers, func(layer []string) bool { return slices.Contains(layer, path) })
}

// read finds the packages of the module in root: every folder with Go files, whatever their build tags. It reads the
// files itself, so that the test is run again when one of them changes.
func read(t *testing.T, root string) (packages []pkg) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if rel != "." {
			base := entry.Name()
			if base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own
			}
		}
		p, err := readPackage(name)
		if p.path = filepath.ToSlash(rel); err == nil && p.found() {
			packages = append(packages, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

func (p pkg) found() bool { return p.code || p.doc || p.imports != nil }

func readPackage(dir string) (p pkg, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return p, err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return p, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return p, err
		}
		p.doc = p.doc || parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != ""
		if strings.HasSuffix(file, "_test.go") {
			if p.imports == nil {
				p.imports = []string{}
			}
			continue
		}
		p.code = true
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return p, err
			}
			if !slices.Contains(p.imports, imported) {
				p.imports = append(p.imports, imported)
			}
		}
	}
	slices.Sort(p.imports)
	return p, nil
}

// Each package stands in one layer.
func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	for _, layer := range layers {
		for _, p := range layer {
			if seen[p] || path.Clean(p) != p {
				t.Errorf("%s is in two layers, or not a path", p)
			}
			seen[p] = true
		}
	}
	for restricted, users := range onlyFor {
		for _, user := range users {
			if user != "" && !seen[user] {
				t.Errorf("%s is for %s, which is in no layer", restricted, user)
			}
		}
	}
}

// What must be complained of, and what must not.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		path, imports string
		complaint     string // part of the only one, "" for none
	}{
		{"cmd/daybook", "daybook/web daybook/internal/series daybook/internal/table/azure daybook/internal/datadir flag", ""},
		{"ingest", "daybook/internal/store daybook/keys fmt github.com/prometheus/prometheus/model/labels", ""},
		{"internal/table/embedded", "daybook/internal/table github.com/cockroachdb/pebble/v2/vfs", ""},
		{"internal/table/azure", "github.com/Azure/azure-sdk-for-go/sdk/data/aztables", ""},
		{"web", "daybook/query github.com/labstack/echo/v4", ""},
		{"ingest", "daybook/query", "not in a layer below"},
		{"rollup", "daybook/ingest", "not in a layer below"},
		{"query", "daybook/web", "not in a layer below"},
		{"keys", "daybook/internal/table", "not in a layer below"},
		{"internal/series", "daybook/keys", "not in a layer below"},
		{"internal/store", "daybook/internal/index", "not in a layer below"},
		{"ingest", "daybook/internal/nowhere", "not in a layer below"},
		{"query", "daybook/internal/table/embedded", "only for cmd/daybook"},
		{"query", "daybook/internal/table/tabletest", "only for"},
		{"web", "daybook/internal/datadir", "only for cmd/daybook"},
		{"internal/store", "github.com/cockroachdb/pebble/v2", "only for internal/table/embedded"},
		{"cmd/daybook", "github.com/Azure/azure-sdk-for-go/sdk/azcore", "only for internal/table/azure"},
		{"query", "github.com/labstack/echo/v4/middleware", "only for web"},
		{"ingest", "flag", "only for cmd/daybook"},
		{"internal/util", "fmt", "say where it belongs"},
	} {
		got := check([]pkg{{path: c.path, imports: strings.Fields(c.imports), doc: true, code: true}})
		switch {
		case c.complaint == "" && len(got) > 0:
			t.Errorf("%s imports %s: %q", c.path, c.imports, got)
		case c.complaint != "" && (len(got) != 1 || !strings.Contains(got[0], c.complaint)):
			t.Errorf("%s imports %s: got %q, want %q", c.path, c.imports, got, c.complaint)
		}
	}
	if got := check([]pkg{{path: "keys", code: true}}); len(got) != 1 || !strings.Contains(got[0], "no comment") {
		t.Errorf("a package without a comment: %q", got)
	}
	if got := check([]pkg{{path: "test/crash", doc: true, imports: []string{}}}); len(got) != 0 {
		t.Errorf("a package of tests: %q", got)
	}
}
