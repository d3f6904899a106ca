# The commands of the repository; `make help` lists them.

SHELL := bash
.DEFAULT_GOAL := help
# The clients' own lock file says what is installed; nothing of theirs runs at installation.
npm_ci := npm ci --omit=peer --omit=optional --legacy-peer-deps --ignore-scripts --no-audit --no-fund

.PHONY: help demo up build test conformance clients check generate fmt vuln fuzz bench-extract bench-recall

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## show the write protocol on a conversation (CONVERSATION=path chooses yours), then leave nothing running
	@.ci/setup
	@.ci/build ./cmd/holdfast
	@bin/holdfast demo $(if $(CONVERSATION),--conversation "$(CONVERSATION)")

up: ## run Holdfast here, with a private PostgreSQL and an embedded NATS
	@.ci/setup up
	@.ci/build ./cmd/holdfast
	@bin/holdfast up

build: ## build every binary into bin/
	@.ci/build ./cmd/...

# Two packages at a time: each starts servers of its own. The Go client is a module of its own; its tests start what this
# one builds, which the cache of results knows nothing of.
test: ## run the whole suite with the race detector
	@.ci/setup test
	go test -race -p 2 -timeout 9m ./...
	cd clients/go && go test -race -count 1 -timeout 5m ./...

conformance: ## drive the unmodified mem0 clients against a running Holdfast
	@.ci/setup test
	@.ci/build ./cmd/holdfast ./cmd/worker
	@cd clients/conformance && $(npm_ci) --silent && node run.mjs

clients: ## run the suites of the Python and TypeScript clients, each against a `holdfast up` of its own
	@.ci/setup test
	clients/test-up clients/python/test
	clients/test-up clients/typescript/test

check: ## format, lint, import direction, generated files, go.mod, vulnerabilities
	@.ci/check

generate: ## write the generated files again
	go generate ./...

fmt: ## format every file written by hand
	@.ci/gofiles | xargs go tool -modfile=.ci/tools/go.mod gofumpt -w

vuln: ## look for known vulnerabilities (GOVULNDB=file://… for a local database)
	@.ci/vuln

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@.ci/fuzz

bench-extract: ## precision and recall of extraction, offline and with the model that HOLDFAST_EXTRACTOR names (SHOW=1: what was missed)
	@go run ./internal/model/evaluate $(if $(SHOW),--show)

bench-recall: ## recall@10 of search on the project's own set: BM25, vectors (of HOLDFAST_EMBEDDER) and both fused
	@.ci/setup test
	@set -o pipefail; go test -tags bench -count 1 -v -run '^TestRecallAtTen$$' ./internal/postgres | grep -v '^=== '
