// Package e2e lets the programs that daybook lives with work against the real daybook binary: a Prometheus that
// scrapes and writes, a recording of one that is replayed, a browser that opens the page. What these tests promise is
// that a sample which a real sender has is in daybook, bit for bit, before and after restarts and crashes, that a
// chart of the last 24 hours is one point read, and that daybook answers what a Prometheus with the same samples does.
//
// It is a module of its own, so that what Prometheus depends on stays out of daybook's module.
//
//	cd test/e2e && go test -count=1 ./...
//
// The first run builds Prometheus, promtool and node_exporter from the module proxy, in the versions that go.mod pins (as
// tools, so that go.sum covers them), which takes some five CPU minutes; on a slow machine give it -timeout 30m. Later runs
// take the binaries from a cache folder and about three minutes, most of which TestPrometheusWrites waits for scrapes.
//
// What the tests need beside Go: Linux or macOS, a Chromium or Chrome, and for the page a web/page/dist that is built
// (make build). Nothing is skipped when something is missing: the test fails and says what it lacks.
//
// Settings are environment variables:
//
//	DAYBOOK_BIN        the daybook to test; without it cmd/daybook is built
//	DAYBOOK_SHARED     the folder that holds data/node15s.ndjson.gz; default ../shared, seen from the repository
//	DAYBOOK_E2E_CACHE  where the built peers are kept; default daybook-e2e in the user's cache folder
//	DAYBOOK_E2E_SEED   of the samples and queries that TestSameAnswers makes up; default 1
//	DAYBOOK_BROWSER    the browser to use; default is the first Chromium or Chrome that is found
//
// Every test starts its own processes on free loopback ports, with data folders that go away afterwards. When a test
// fails, the end of what its processes logged follows the failure. TestPageShowsChart leaves a picture of the page in
// artifacts, which git ignores.
package e2e
