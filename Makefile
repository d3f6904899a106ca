# The commands of the repository; `make help` lists them.

SHELL := bash
.DEFAULT_GOAL := help
# The clients' own lock file says what is installed; nothing of theirs runs at installation.
npm_ci := npm ci --omit=peer --omit=optional --legacy-peer-deps --ignore-scripts --no-audit --no-fund

.PHONY: help demo up build test test-browser test-pgbouncer chaos cluster mutants conformance clients check generate release release-check fmt vuln fuzz deploy-check deploy-images bench bench-quick bench-scale bench-soak profile bench-extract bench-recall spec model

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
	go test -race -p 2 -timeout 20m ./...
	cd clients/go && go test -race -count 1 -timeout 5m ./...

# Its short part, TestTransactionPooler and TestBehindPgBouncer, belongs to `make test`.
POOLED ?= ^Test(OneCommand|CancelAndRetry|Order|WorkerKilled|APIKilled|SIGTERM|StoppedWorker|BatchKilled|Erase|EraserKilled|AnEditOvertakesARunningRevision|Webhook|StreamResumed|SnapshotKilled|Mem0Import|BehindPgBouncer)$$
test-pgbouncer: ## run the store's suite, and end to end what POOLED names, behind PgBouncer in transaction mode
	@.ci/setup test
	TESTKIT_POOLER=transaction go test -count 1 -timeout 30m ./internal/postgres
	TESTKIT_POOLER=transaction go test -count 1 -timeout 30m -run '$(POOLED)' ./internal/endtoend

# Part of `make test`; here with a picture of each page, in both themes and at the width of a phone.
SHOTS ?= $(CURDIR)/bin/screenshots
test-browser: ## go through the console and the reference in Chromium, and leave pictures of them in SHOTS (bin/screenshots)
	@.ci/setup test
	@mkdir -p $(SHOTS)
	HOLDFAST_TEST_SCREENSHOTS=$(SHOTS) go test -count 1 -timeout 15m -run '^(TestConsole.*|TestBrowser)$$' ./internal/endtoend ./internal/httpapi/docs

spec: ## check the specification of the protocol with SPIN, and that its broken versions are rejected
	@.ci/setup test
	@docs/spec/check

RAPID_CHECKS ?= 500
RAPID_SEED ?= $(shell echo $$((RANDOM * 32768 + RANDOM + 1)))
model: ## run random histories (RAPID_CHECKS=500 RAPID_SEED=…) against the model, and concurrent ones for linearizability
	@.ci/setup test
	go test -race -count 1 -timeout 60m -run '^(TestModel|TestLinearizable)' ./internal/postgres -rapid.checks=$(RAPID_CHECKS) -rapid.seed=$(RAPID_SEED)

# The run bounds itself by the length of its traffic. As without CHAOS_ settings it is part of `make test`.
chaos: ## run the kill harness (CHAOS_COMMANDS=10000 CHAOS_SECONDS=… CHAOS_SEED=… CHAOS_FAULTS=kill,stop,…; docs/chaos.md)
	@.ci/setup test
	@set -o pipefail; go test -count 1 -timeout 48h -v -run '^TestChaos$$' ./internal/chaos | grep -v '^=== '

# Nine processes for a minute; what it measures is its output.
cluster: ## kill NATS servers in turn and fail PostgreSQL over while callers write; prints how long each was felt (docs/deployment.md)
	@.ci/setup test
	@set -o pipefail; go test -tags cluster -count 1 -timeout 30m -v -run '^TestCluster$$' ./internal/cluster | grep -v '^=== '

mutants: ## take out each guard of the protocol and see which test fails (MUTANTS='erase|token' VERBOSE=1; docs/mutants.md)
	@.ci/setup test
	@go run ./internal/mutants -run '$(MUTANTS)' $(if $(VERBOSE),-v)

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

release: ## build what is committed into dist/: archives for Linux and macOS, bills of materials, SHA256SUMS (docs/compatibility.md)
	@.ci/release

release-check: ## build this platform's release twice, in two directories, and compare
	@.ci/release check

generate: ## write the generated files again
	go generate ./...

fmt: ## format every file written by hand
	@.ci/gofiles | xargs go tool -modfile=.ci/tools/go.mod gofumpt -w

vuln: ## look for known vulnerabilities (GOVULNDB=file://… for a local database)
	@.ci/vuln

fuzz: ## run every fuzz target for FUZZTIME (10s), and every property of the domain over other cases than the suite's
	@.ci/fuzz

# A module of its own: nobody else downloads Helm, Kubernetes, BuildKit, compose-go and Prometheus.
deploy-check: ## check images, compose file, chart, alerts and dashboard by the code that will read them (docs/deployment.md)
	cd deploy/check && go test -count 1 -timeout 20m ./...

deploy-images: ## run the build of deploy/Containerfile outside of an image: static programs and their bills of materials
	cd deploy/check && go test -tags images -count 1 -timeout 40m -v -run '^TestBuildStage$$' .

bench-extract: ## precision and recall of extraction, offline and with the model that HOLDFAST_EXTRACTOR names (SHOW=1: what was missed)
	@go run ./internal/model/evaluate $(if $(SHOW),--show)

bench-recall: ## recall@10 of search on the project's own set: BM25, vectors (of HOLDFAST_EMBEDDER) and both fused
	@.ci/setup test
	@set -o pipefail; go test -tags bench -count 1 -v -run '^TestRecallAtTen$$' ./internal/postgres | grep -v '^=== '

# The bench is a module of its own, so that nobody else downloads the peers it measures beside. BENCH_DIR is where its
# servers live (/var/tmp), BENCH takes more flags (`cd bench && go run . full -h`).
bench: ## measure Holdfast beside its peers, with servers of its own, for half an hour (docs/benchmarks.md)
	@.ci/setup
	@cd bench && go run . full $(BENCH)

bench-quick: ## the same with two short rounds, in less than two minutes on a quiet machine
	@.ci/setup
	@cd bench && go run . quick $(BENCH)

bench-scale: ## measure with 10 M finished and 1 M waiting tasks (BENCH='-finished 100000 -waiting 10000' for less)
	@.ci/setup
	@cd bench && go run . scale $(BENCH)

bench-soak: ## send a million requests and see that API and worker hold no more afterwards (BENCH='-requests 10000')
	@.ci/setup
	@cd bench && go run . soak $(BENCH)

profile: ## write CPU profiles and flame graphs of API and worker under load to bench/results
	@.ci/setup
	@cd bench && go run . profile $(BENCH)
