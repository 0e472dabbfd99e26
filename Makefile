# claimq: everything that a person or CI runs. `make` alone lists it.

BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# As the tests build claimq, so that nothing is compiled twice (procs.Environ).
RELEASED := CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath'
GO      ?= go
MODULES := . jepsen bench/peers client/otel

.DEFAULT_GOAL := help
.PHONY: help build demo test page python proof test-sqs test-kill test-upgrade test-steps test-fuzz test-operations test-workers test-memory test-slots test-page test-page-large test-page-soak test-page-pairs test-recipes soak crashes jepsen jepsen-long jepsen-selftest jepsen-rules lint mac fmt vuln bench bench-peers bench-fair bench-callers bench-sqs bench-fsm bench-scale bench-overview benchstat fuzz cover clean cluster dist

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## build bin/claimq, with its page where npm is there
	@mkdir -p $(BIN)
	@web/libraries
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/claimq ./cmd/claimq

demo: build ## three nodes do real work, the leader is killed, a count at the end
	$(GO) -C jepsen run . demo --binary $(CURDIR)/$(BIN)/claimq

cluster: build ## a local three-node cluster in the foreground; Ctrl-C stops it
	$(BIN)/claimq dev

test: ## every test, what proves by mass in its short form
	./.ci/test

proof: ## what proves by mass, whole: make proof PARTS='properties soak' (CONTRIBUTING.md; hours)
	./.ci/proof $(PARTS)

test-sqs: ## clients of Amazon SQS that others wrote do 20,000 messages each, the leader killed every 3 s
	CLAIMQ_PROOF=1 $(GO) -C jepsen test -count=1 -timeout 0 -v ./sqs

test-kill: build ## the long kill test: 20,000 tasks, the leader killed 20 times
	$(GO) -C jepsen run . kill --binary $(CURDIR)/$(BIN)/claimq --tasks $(or $(TASKS),20000) --kills 20

test-upgrade: build ## three nodes go up to a binary that knows one feature level more under load, back, and up for good
	$(GO) -C jepsen run . upgrade --binary $(CURDIR)/$(BIN)/claimq

test-steps: build ## 2,000 parents of 5 steps, the leader killed 10 times
	$(GO) -C jepsen run . steps --binary $(CURDIR)/$(BIN)/claimq --tasks $(or $(PARENTS),2000) --kills 10

test-fuzz: build ## 100,000 broken requests against every call and the peer ports of three nodes, and sieges by thousands of connections; then again with keys and TLS
	$(GO) -C jepsen run . fuzz --binary $(CURDIR)/$(BIN)/claimq --requests $(or $(REQUESTS),100000) --seed $(or $(SEED),1)
	$(GO) -C jepsen run . fuzz --binary $(CURDIR)/$(BIN)/claimq --requests $(or $(REQUESTS),100000) --seed $(or $(SEED),1) --secure

test-operations: build ## a cluster grows, shrinks, has nodes replaced and restarted, loses all disks and is restored, under load
	$(GO) -C jepsen run . operations --binary $(CURDIR)/$(BIN)/claimq --pause $(or $(PAUSE),10s) --rate $(or $(RATE),500) --seed $(or $(SEED),1)

test-workers: build ## worker processes stopped past their leases, cut off, killed, the leader killed at each of their calls: make test-workers TIME=5m SEED=1
	$(GO) -C jepsen run . workers --binary $(CURDIR)/$(BIN)/claimq --time $(or $(TIME),3m) --seed $(or $(SEED),1)
	$(GO) -C jepsen run . workers --binary $(CURDIR)/$(BIN)/claimq --time $(or $(TIME),3m) --seed $(or $(SEED),1) --worker 'claimq work --serve --processes 2 -- /usr/bin/python3 workers/served/diary.py'
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --silent && npm run --silent build
	$(GO) -C jepsen run . workers --binary $(CURDIR)/$(BIN)/claimq --time $(or $(TIME),3m) --seed $(or $(SEED),1) --worker 'claimq work --serve --processes 2 -- node workers/served/diary.mjs'

test-memory: build ## what memory nodes take when every call is asked over 400 connections at once, on a state made for it: make test-memory CALLS=list_tasks,run_batch
	$(GO) -C jepsen run . memory --binary $(CURDIR)/$(BIN)/claimq $(if $(CALLS),--calls $(CALLS))
	$(GO) -C jepsen run . memory --binary $(CURDIR)/$(BIN)/claimq $(if $(CALLS),--calls $(CALLS)) --follower

test-slots: ## one Worker with 1,000 busy slots, the leader killed 10 times: nothing lost, nothing held twice
	CLAIMQ_PROOF=1 $(GO) -C jepsen test -count=1 -v -run '^TestBusyWorker$$' .

page: ## the page without a browser: its types against api/openapi.yaml, and what its parts compute
	./.ci/page

python: ## the types of the Python client, strictly, by mypy and pyright
	./.ci/python

test-page: ## the page in Debian's Chromium, all of it: make test-page SHOTS=/tmp/shots (a folder that is there)
	CLAIMQ_PROOF=1 $(GO) -C jepsen test -count=1 -timeout 0 -v ./browser $(if $(SHOTS),-shots $(SHOTS))

test-page-large: ## the page with a million tasks of 5,000 types: how long until it is painted
	$(GO) -C jepsen test -count=1 -timeout 0 -run '^$$' -bench Large -benchtime 10x ./browser

test-page-soak: ## a live overview, whose heap must stay flat: make test-page-soak MINUTES=60
	$(GO) -C jepsen test -count=1 -timeout 0 -run '^$$' -bench Heap -benchtime $(or $(MINUTES),60)m ./browser

test-page-pairs: ## what a load loses by an open page, measured in pairs: make test-page-pairs ROUNDS=16
	$(GO) -C jepsen test -count=1 -timeout 0 -v -run '^$$' -bench Pairs -benchtime $(or $(ROUNDS),16)x ./browser

test-recipes: ## every command of README, docs/operations.md and the guides, against real nodes (root)
	$(GO) -C jepsen test -count=1 ./recipes

# One seed is two virtual minutes and about a second of a core: a quarter of an hour
# of two cores for 50 virtual hours. Most is garbage, so it is collected seldom. MIX is one of cluster's soakMixes; each seed
# has its own if it is not given.
soak: ## real Raft over real stores and the nodes' own port in virtual time: make soak SEEDS=1500 FIRST=1 MIX=
	GOGC=800 $(GO) test -run '^TestSoak$$' -v -timeout 0 ./cluster -soak.real 1h -soak.seeds $(or $(SEEDS),1500) -soak.first $(or $(FIRST),1) -soak.virtual 2m -soak.mix '$(MIX)'

# EVERY=1 is every crash of every script: some minutes a script.
crashes: ## clusters started from what a crash after each change of a disk has left: make crashes SCRIPTS='*' EVERY=1 (root)
	$(GO) -C jepsen test -run '^TestCrash$$' -v -timeout 0 ./crash -crash.scripts '$(or $(SCRIPTS),*)' -crash.every $(or $(EVERY),1)

jepsen: ## two and a half hours of runs under every fault, alone and in pairs (root)
	$(GO) -C jepsen run . suite --runs $(or $(RUNS),100) --seed $(or $(SEED),1)

jepsen-long: ## the same for a night
	$(GO) -C jepsen run . suite --runs 400 --seed $(or $(SEED),1000)

jepsen-rules: ## builds with bugs in the rules of the contract; shows that its rows catch each
	$(GO) -C jepsen run . rules

jepsen-selftest: ## builds with planted bugs; shows each caught, by what and how fast (root)
	$(GO) -C jepsen run . selftest

lint: $(BIN)/golangci-lint $(BIN)/walls ## formatting, vet, import rules and the other linters, and how many files share a room
	$(BIN)/golangci-lint fmt --diff
	export $(RELEASED); for m in $(MODULES); do (cd $$m && $(CURDIR)/$(BIN)/golangci-lint run ./... && $(CURDIR)/$(BIN)/walls ./...) || exit 1; done

mac: $(BIN)/mac ## what a Mac is to build: types, of tests too
	for m in $(MODULES); do (cd $$m && $(CURDIR)/$(BIN)/mac ./...) || exit 1; done

vuln: $(BIN)/govulncheck ## known vulnerabilities in what the code reaches (asks vuln.go.dev)
	for m in . jepsen; do (cd $$m && $(CURDIR)/$(BIN)/govulncheck ./...) || exit 1; done

fmt: $(BIN)/golangci-lint ## format the code
	$(BIN)/golangci-lint fmt

# The linter has a separate module, so that its dependencies are not ours.
$(BIN)/golangci-lint: tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	cd tools && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

$(BIN)/walls: tools/go.mod tools/go.sum tools/walls/main.go
	@mkdir -p $(BIN)
	cd tools && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../$(BIN)/walls ./walls
	@touch $@

$(BIN)/mac: tools/go.mod tools/go.sum tools/mac/main.go
	@mkdir -p $(BIN)
	cd tools && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../$(BIN)/mac ./mac

$(BIN)/govulncheck: tools/govulncheck/go.mod tools/govulncheck/go.sum
	@mkdir -p $(BIN)
	cd tools/govulncheck && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../../$(BIN)/govulncheck golang.org/x/vuln/cmd/govulncheck
	@touch $@

$(BIN)/benchstat: tools/benchstat/go.mod tools/benchstat/go.sum
	@mkdir -p $(BIN)
	cd tools/benchstat && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../../$(BIN)/benchstat golang.org/x/perf/cmd/benchstat
	@touch $@

# What tests the chart has a module of its own too.
$(BIN)/chart: tools/helm/go.mod tools/helm/go.sum $(wildcard tools/helm/chart/*.go)
	@mkdir -p $(BIN)
	cd tools/helm && $(RELEASED) $(GO) build -ldflags '-s -w' -o ../../$(BIN)/chart ./chart
	@touch $@

bench: build ## drive three nodes of this build and print the figures of docs/benchmarks.md
	$(GO) run ./bench/machine
	$(BIN)/claimq bench --nodes 3 --conns 64
	$(BIN)/claimq bench --nodes 3 --conns 256
	$(BIN)/claimq bench --no-raft --conns 256

bench-peers: build ## three nodes against NATS JetStream, RabbitMQ and beanstalkd, if installed: make bench-peers ROUNDS=5 COUNTS=1,64,256
	cd bench/peers && $(GO) run . --binary ../../$(BIN)/claimq $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(COUNTS),--counts $(COUNTS))

bench-fair: build ## how long tasks of fifty tenants wait behind the 100,000 of another, in claimq and in RabbitMQ: make bench-fair ROUNDS=5
	cd bench/peers && $(GO) run . --fair --binary ../../$(BIN)/claimq --rounds $(or $(ROUNDS),3)

bench-callers: build ## tasks a second over the number of callers, claimq and NATS JetStream, measured and drawn: make bench-callers ROUNDS=5 COUNTS=1,64
	cd bench/peers && $(GO) run . --binary ../../$(BIN)/claimq --peers nats-server --figures ../callers/figures.csv --rounds $(or $(ROUNDS),5) --counts $(or $(COUNTS),1,4,16,64,256,1000,2000,4000)
	$(GO) run ./bench/callers < bench/callers/figures.csv > docs/img/callers.svg

bench-sqs: build ## the endpoint for clients of Amazon SQS against the HTTP API, and against GoAws: make bench-sqs ROUNDS=5 GOAWS=/path/of/goaws
	cd bench/peers && $(GO) run ./sqs --binary ../../$(BIN)/claimq $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(GOAWS),--goaws $(GOAWS))

# GOGC as the server has it. 10,000,000 tasks take about 4 GB and some minutes:
# make bench-fsm TASKS=1000,1000000,10000000
BENCH_FSM_TASKS := 1000,1000000
bench-fsm: ## what Apply costs, by command, among 1,000 and 1,000,000 tasks: make bench-fsm COUNT=6 > new.txt
	GOGC=400 $(GO) test -run '^$$' -bench . -benchmem -count $(or $(COUNT),1) -timeout 0 ./fsm -bench.tasks $(or $(TASKS),$(BENCH_FSM_TASKS))
	$(GO) test -count=1 -timeout 0 -run Machine_Bytes -v ./fsm -memory.tasks 100000

bench-overview: ## what the page's overview asks, what groups failures and what searches params, with a million tasks of 5,000 types: how long it takes, and holds the state
	GOGC=400 $(GO) test -run '^$$' -bench 'Overview|Failures|History|Search' -benchtime 1000x -timeout 0 ./api

benchstat: $(BIN)/benchstat ## what the benchmarks in two files say, compared: make benchstat OLD=old.txt NEW=new.txt
	$(BIN)/benchstat $(OLD) $(NEW)

# 10,000,000 tasks want one node and 16 GB: make bench-scale TASKS=10000000 NODES=1
bench-scale: build ## real nodes with 1,000,000 tasks: memory, snapshots beside load, reads, restart
	$(GO) -C jepsen run . scale --binary $(CURDIR)/$(BIN)/claimq --tasks $(or $(TASKS),1000000) --nodes $(or $(NODES),3)

# The same commit, Go and VERSION give the same bytes.
# SIGN_KEY is a file of ssh-keygen, an Ed25519 key; docs/install.md says how a
# signature is checked.
dist: ## release archives for linux and darwin, amd64 and arm64, packages (deb, rpm), notices, bills of materials and SHA256SUMS: make dist SIGN_KEY=release.key
	@[ -z "$$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || { echo "make dist: the files are those of a commit: commit your changes, or stash them"; exit 1; }
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} $(GO) -C jepsen run ./deploy/dist --version $(VERSION) --out $(CURDIR)/dist $(if $(SIGN_KEY),--sign-key $(abspath $(SIGN_KEY)))

fuzz: ## each fuzz target for 30 seconds
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$p || exit 1; \
	  done; \
	done

cover: ## test coverage by function
	$(GO) test -coverprofile=coverage.out -coverpkg=./... ./...
	$(GO) tool cover -func=coverage.out

clean: ## remove what was built
	rm -rf $(BIN) dist coverage.out
