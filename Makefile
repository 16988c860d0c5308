# make run     builds page and binary and serves on 127.0.0.1:9201 with data in ./data
# make test    everything that must hold before a change lands
# The other targets are parts of these. What they need beyond Go, Node.js and make they install themselves.

SHELL       := /bin/bash -eu -o pipefail
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unreleased)
BRANCH      := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
GOLANGCI    := bin/golangci-lint
GOLANGCI_AT := v2.15.0
PAGE        := web/page
export CGO_ENABLED := 0

.PHONY: run build page test lint unit race page-check e2e api promql crash fuzz bench clean chromium

run: build
	bin/daybook serve --listen 127.0.0.1:9201 --data-dir ./data

build: page
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION) -X main.branch=$(BRANCH)" -o bin/daybook ./cmd/daybook

# The page's sources and the lock file decide whether it is built anew.
page: $(PAGE)/dist/index.html

$(PAGE)/node_modules/.package-lock.json: $(PAGE)/package-lock.json
	cd $(PAGE) && npm ci --no-audit --no-fund
	touch $@

$(PAGE)/dist/index.html: $(PAGE)/node_modules/.package-lock.json $(shell find $(PAGE)/src $(PAGE)/public -type f 2>/dev/null) $(PAGE)/index.html $(PAGE)/vite.config.ts
	cd $(PAGE) && npm run build
	touch $@

test: lint page-check build race api promql e2e

lint: $(GOLANGCI)
	test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not gofmt-clean:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/e2e && ../../$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/promql && ../../$(GOLANGCI) run --allow-parallel-runners ./...
	cd test/api && ../../$(GOLANGCI) run --allow-parallel-runners ./...

$(GOLANGCI): Makefile
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_AT)
	touch $@

page-check: page
	cd $(PAGE) && npm run check

# The quick ones, for while working.
unit:
	go test ./... -short

# The race detector needs cgo.
race:
	CGO_ENABLED=1 go test -race -count=1 -timeout 30m ./...

# The same questions to daybook and to Prometheus's own API, which takes some minutes to build for the first time.
api:
	cd test/api && go test -timeout 10m ./...

# Prometheus's own test scripts of PromQL.
promql:
	cd test/promql && go test -count=1 -timeout 30m ./...

crash:
	CGO_ENABLED=1 go test -race -count=1 -v ./test/crash

e2e: build chromium
	cd test/e2e && DAYBOOK_BIN=$(CURDIR)/bin/daybook go test -count=1 -timeout 30m ./...

# The browser that the end-to-end test opens the page in.
chromium:
	command -v chromium >/dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; }

# Each fuzz target for a while; the tests run their corpora only.
FUZZTIME := 20s
fuzz:
	for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz || true); do \
	    go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p; \
	  done; \
	done

bench:
	go test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin $(PAGE)/node_modules $(PAGE)/dist/index.html $(PAGE)/dist/assets
