package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// repository is the root of daybook's repository, seen from this folder.
var repository = filepath.Join("..", "..")

// A peer is a program of somebody else's that is built from its module, in the version that go.mod pins.
type peer struct {
	name, module, pkg string
	flags             []string
}

var (
	prometheusPeer = peer{
		name:   "prometheus",
		module: "github.com/prometheus/prometheus",
		pkg:    "github.com/prometheus/prometheus/cmd/prometheus",
		// Without the service discoveries of the clouds: a third of the time to build.
		flags: []string{"-tags", "remove_all_sd"},
	}
	nodeExporterPeer = peer{
		name:   "node_exporter",
		module: "github.com/prometheus/node_exporter",
		pkg:    "github.com/prometheus/node_exporter",
	}
)

// build gives the peer's binary, built before or now.
func (p peer) build(t *testing.T) string {
	t.Helper()
	out, err := goCommand(".", "list", "-m", "-f", "{{.Version}}", p.module)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cacheDir(t), strings.TrimSpace(out))
	bin := filepath.Join(dir, p.name)
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Built beside its place and moved there, so that a run that is broken off or a second one never leaves half a binary.
	unfinished, err := os.MkdirTemp(dir, "building-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(unfinished)
	t.Logf("building %s %s, once", p.name, filepath.Base(dir))
	args := append([]string{"build", "-trimpath", "-o", filepath.Join(unfinished, p.name)}, p.flags...)
	if _, err := goCommand(".", append(args, p.pkg)...); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(unfinished, p.name), bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

func cacheDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DAYBOOK_E2E_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatalf("no folder to keep built programs in, set DAYBOOK_E2E_CACHE: %v", err)
		}
		dir = filepath.Join(user, "daybook-e2e")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// builtDaybook is where TestMain wants daybook built, if a test asks for it.
var builtDaybook string

// buildDaybook builds the program under test from this checkout, once.
var buildDaybook = sync.OnceValue(func() error {
	_, err := goCommand(repository, "build", "-o", builtDaybook, "./cmd/daybook")
	return err
})

// daybookBinary gives the program under test.
func daybookBinary(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("DAYBOOK_BIN"); bin != "" {
		return bin
	}
	if err := buildDaybook(); err != nil {
		t.Fatal(err)
	}
	return builtDaybook
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "daybook-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builtDaybook = filepath.Join(dir, "daybook")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// goCommand runs go in a folder, without cgo, and gives what it prints.
func goCommand(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
