# `make` alone lists the targets. Every target works in a fresh clone; downloads go to .cache/ or to the module cache.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# In the order in which they are generated: deploy reads the CONFIG.md of the services.
MODULES := shared edge control engine-relay deploy
# Modules outside of the workspace. More below helm/e2e wrap Kubernetes, etcd and CoreDNS in a main function each; they are not linted,
# since loading their types takes minutes.
NESTED := deploy/images helm/e2e
LINT_VERSION := 2.15.0
HELM_VERSION := 3.22.0
HELM_UNITTEST_VERSION := 1.0.0
HELM_DOCS_VERSION := 1.14.2
GOVULNCHECK_VERSION := 1.9.0
ACTIONLINT_VERSION := 1.7.12
# The release before this one, whose binaries must run on the newest schema.
PREVIOUS ?= b0054c8
FUZZTIME ?= 30s
SOAKTIME ?= 120m

# The race detector pauses at exit for programs that print last lines; the tests do not need that pause.
TEST := GORACE=atexit_sleep_ms=50 go test

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every binary into bin/
	@mkdir -p bin
	go build -o bin/ work

.PHONY: run
run: build ## Start the local stack in the foreground (PORT_BASE=18080 moves its ports, BACKENDS=real wants a real Redis and Kafka)
	@exec bin/local run

.PHONY: sdk
sdk: ## Build the browser SDK into edge/sdk/dist and for the edge, and print sizes, integrity hashes and the script element
	@go run storefront.internal/deploy/web/buildsdk .

.PHONY: test
test: build ## Run every test on real PostgreSQL, Redis and Kafka (REQUIRE_REAL=1 fails without them)
	go vet work
	go vet -tags chaos work
	go vet -tags web storefront.internal/deploy/webtest/... storefront.internal/deploy/web
	bin/local exec -- $(MAKE) --no-print-directory test-packages test-system

# These run inside `bin/local exec`, which puts the addresses of PostgreSQL, Redis and Kafka into the environment.
# Tests that search the whole repository or drive other processes share no memory between goroutines: the race
# detector would only slow them down.
.PHONY: test-packages test-system
NO_RACE := /deploy/docs$$|/deploy/observability$$|/deploy/faults/mutants$$
test-packages:
	$(TEST) -race -timeout 8m $$(go list work | grep -vE '/deploy/systemtest|/deploy/faults$$|$(NO_RACE)')
	$(TEST) -timeout 5m $$(go list work | grep -E '$(NO_RACE)')
test-system:
	$(TEST) -parallel 8 -timeout 20m storefront.internal/deploy/systemtest/...
	FAULTS_BIN=$(CURDIR)/bin $(TEST) -timeout 9m storefront.internal/deploy/faults

# The tests in browsers start stores of their own. WEB_SCREENSHOTS=folder keeps what they saw.
.PHONY: test-web
test-web: build deploy/webtest/node_modules edge/sdk/node_modules ## Test the browser SDK, its npm package and the demo shop in a real Chromium (4 minutes)
	$(TEST) -tags web -count=1 -run TestThePackage storefront.internal/deploy/web
	WEB_BROWSERS=chromium WEB_VISITS=24 $(TEST) -tags web -count=1 -parallel 4 -timeout 8m storefront.internal/deploy/webtest/...

.PHONY: web-all
web-all: build deploy/webtest/node_modules ## The same, and in Firefox and WebKitGTK (Debian: firefox-esr webkit2gtk-driver xvfb)
	WEB_BROWSERS="chromium firefox webkit" WEB_VISITS=40 WEB_VISITS_WEBKIT=12 WEB_VISITS_QUIET=60 $(TEST) -tags web -count=1 -timeout 30m storefront.internal/deploy/webtest/...

.PHONY: web-campaign
web-campaign: build ## Play thousands of visits under faults in three browsers (BROWSERS="chromium firefox" VISITS=n SEED=n SHOPPERS=4)
	WEB_BROWSERS="$(or $(BROWSERS),chromium firefox webkit)" WEB_VISITS_CHROMIUM=$(or $(VISITS),3000) \
	WEB_VISITS_FIREFOX=$(or $(VISITS),1000) WEB_VISITS_WEBKIT=$(or $(VISITS),300) WEB_SEED=$(SEED) WEB_SHOPPERS=$(or $(SHOPPERS),4) WEB_VISITS_QUIET=200 WEB_KILLS=10 \
		$(TEST) -tags web -count=1 -v -run 'TestCampaign|TestFewSignals|TestAKilledBrowser' -timeout 12h storefront.internal/deploy/webtest

# The lock files have the checksum of each package and name no registry.
deploy/webtest/node_modules edge/sdk/node_modules: %/node_modules: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
	@touch $@

.PHONY: soak
soak: build ## Run the system tests at full length (SOAKTIME=120m at most)
	SOAK=1 bin/local exec -- env $(TEST) -v -parallel 16 -timeout $(SOAKTIME) storefront.internal/deploy/systemtest/...
	SOAK=1 bin/local exec -- env $(TEST) -v -run 'TestADelete|TestFetches' storefront.internal/control/internal/postgres
	SOAK=1 bin/local exec -- env $(TEST) -v -run TestUpgradeBesideWriters storefront.internal/shared/pg/migrations

.PHONY: matrix
matrix: build ## Make each dependency fail in each way and write deploy/runbooks/failure-matrix.md (8 minutes)
	SOAK=1 MATRIX_PAGE=$(CURDIR)/deploy/runbooks/failure-matrix.md bin/local exec -- env $(TEST) -v -run 'TestFailureMatrix$$' -timeout 20m \
		storefront.internal/deploy/systemtest

.PHONY: faults
faults: build ## Inject faults into a whole deployment and check what it stored (MINUTES=10 SEED=n FAULTS=N1,N2 REDIS=false SIGNALS=n BROKERS=n CONNECTIONS=n REPORT=file)
	bin/faults run -minutes $(or $(MINUTES),10) -seed $(or $(SEED),0) -faults "$(FAULTS)" -redis=$(or $(REDIS),true) -bin $(CURDIR)/bin \
		-signals $(or $(SIGNALS),0) -brokers $(or $(BROKERS),0) $(addprefix -connections ,$(CONNECTIONS)) -markdown "$(REPORT)"

.PHONY: faults-selftest
faults-selftest: build ## Plant bugs and check that the campaign finds each of them (ONLY=mutant,scenario)
	bin/faults selftest -only "$(ONLY)"

.PHONY: faults-sweep
faults-sweep: build ## Kill a process at every failpoint, at two hits, with every resend policy (ONLY=point,point)
	bin/faults sweep -only "$(ONLY)"

.PHONY: model
model: ## Play the model of the claim protocol, without a bug and with each planted bug (RUNS=20000)
	python3 edge/internal/claims/model/claims.py $(or $(RUNS),20000) all

.PHONY: bench
bench: build ## Run the benchmarks and write deploy/bench/RESULTS.md (BENCH=pattern PKG=package)
	BENCH_RESULTS=$(CURDIR)/deploy/bench/RESULTS.md bin/local exec -- go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -timeout 60m \
		$(or $(PKG),$$(go list work | grep -v '/deploy/systemtest'))

.PHONY: bench-ledger
bench-ledger: build ## Fill the ledger and measure its size and the cost of a signal (ROWS=10000000; ROWS=100000000 BENCH='^BenchmarkFilledLedger$$/digests' needs 12 GB of disk)
	LEDGER_ROWS=$(or $(ROWS),20000000) bin/local exec -- go test -run '^$$' -bench '$(or $(BENCH),^Benchmark(LedgerForms|FilledLedger)$$)' -benchtime 1x -timeout 8h storefront.internal/deploy/bench

.PHONY: bench-compare
bench-compare: build ## Run the benchmarks of recording signals and of reading items, alternating with the edge of another commit (BASE=ref; BENCH=pattern)
	@base=$$(mktemp -d) && trap 'git worktree remove --force "$$base"' EXIT && git worktree add --quiet --detach "$$base" "$(BASE)" && \
	(cd "$$base" && go build -o bin/ work) && \
	BENCH_BASE=$$base/bin bin/local exec -- go test -run '^$$' -bench '$(or $(BENCH),^BenchmarkIntake$$|^BenchmarkReadItem$$)' -timeout 60m storefront.internal/deploy/bench

.PHONY: observe-live
observe-live: build ## Run every dashboard query and alert rule on a real Prometheus beside a stack under load; provoke three alerts
	bin/observability live

.PHONY: fuzz
fuzz: build ## Run each fuzz target for FUZZTIME (30s)
	bin/local exec -- .ci/fuzz $(FUZZTIME)

.PHONY: schemathesis
schemathesis: build ## Send requests generated from the OpenAPI documents to both listeners (needs Python; EXAMPLES=200 SEED=1)
	@.ci/schemathesis $(or $(EXAMPLES),200) $(or $(SEED),1)

.PHONY: lint
lint: bin/golangci-lint ## Check formatting, line width, the import law, and the size of files and functions
	@for m in $(MODULES); do echo "lint $$m"; (cd $$m && ../bin/golangci-lint run ./...) || exit 1; done
	@echo "lint deploy, tests with tags"; cd deploy && ../bin/golangci-lint run --build-tags helm,images,web ./helmtest/... ./imagetest/... ./webtest/... ./web/...
	@for m in $(NESTED); do echo "lint $$m"; (cd $$m && GOWORK=off ../../bin/golangci-lint run ./...) || exit 1; done
	@.ci/filesize
	@$(MAKE) --no-print-directory lint-workflows

bin/golangci-lint:
	@mkdir -p bin
	@if golangci-lint version 2>/dev/null | grep -q 'version $(LINT_VERSION) '; then ln -sf "$$(command -v golangci-lint)" $@; \
	else GOBIN="$(CURDIR)/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION); fi

.PHONY: vuln
vuln: ## Check the downloaded modules against their checksums, and every module for known vulnerabilities
	@for m in $(MODULES) $(NESTED); do echo "verify and govulncheck $$m"; \
	(cd $$m && export GOWORK=off && go mod verify && go run golang.org/x/vuln/cmd/govulncheck@v$(GOVULNCHECK_VERSION) ./...) || exit 1; done

.PHONY: lint-workflows
lint-workflows: ## Check the workflows of GitHub Actions
	GOWORK=off go run github.com/rhysd/actionlint/cmd/actionlint@v$(ACTIONLINT_VERSION) -shellcheck= -pyflakes=

.PHONY: images
images: build ## Build the image of each service twice without Docker, compare both, and run it (Linux, as root)
	@.ci/images

.PHONY: tidy
tidy: ## Tidy every module
	@for m in $(MODULES); do echo "tidy $$m"; (cd $$m && go mod tidy) || exit 1; done

.PHONY: generate
generate: ## Generate CONFIG.md, METRICS.md and the setting names in the chart's values.schema.json
	@for m in $(MODULES); do echo "generate $$m"; (cd $$m && go generate ./...) || exit 1; done

# A helm that was built by `go install` assumes Kubernetes 1.20, hence --kube-version.
.PHONY: helm-test
helm-test: build bin/helm bin/helm-unittest bin/helm-docs ## Test the chart: lint, units, schema, golden renders, rules, documents, and the real binaries
	@for v in helm/storefront/ci/*-values.yaml; do bin/helm lint --strict --quiet --kube-version 1.36.0 -f $$v helm/storefront || exit 1; done
	bin/helm-unittest helm/storefront
	@rm -rf bin/golden && helm/golden/render bin/golden && diff -ru --exclude=render helm/golden bin/golden || { echo "make helm-golden writes the renders again"; exit 1; }
	@cp helm/storefront/README.md bin/README.chart && $(HELM_DOCS) && diff -u bin/README.chart helm/storefront/README.md || { echo "helm/storefront/README.md was stale; it is written anew"; exit 1; }
	@command -v promtool >/dev/null || { echo "promtool is missing: install Prometheus (Debian: prometheus)"; exit 1; }
	promtool check rules helm/storefront/rules/*.yaml
	cd deploy/images && GOWORK=off go test -run 'TestPush|TestRelease' .
	go vet -tags helm storefront.internal/deploy/helmtest/...
	PREVIOUS=$(PREVIOUS) bin/local exec -- go test -tags helm -timeout 15m storefront.internal/deploy/helmtest/...

.PHONY: helm-e2e
helm-e2e: build bin/helm ## Install the chart on a real Kubernetes control plane, which the first run builds (minutes)
	@helm/e2e/tools .cache/bin kubernetes etcd kwok
	cd helm/e2e && GOWORK=off go vet . && HELM_E2E_TOOLS=$(CURDIR)/.cache/bin ../../bin/local exec -- env GOWORK=off go test -count=1 -v -timeout 20m .

# The release before, as a commit that has a chart.
K8S_PREVIOUS ?= 8c200cc
.PHONY: k8s-e2e
k8s-e2e: build bin/helm ## Run the trial and the release on a Kubernetes with running pods, and disturb it under load (Linux, as root; RUN=pattern; minutes)
	@helm/e2e/tools .cache/bin kubernetes etcd coredns
	@PREVIOUS=$(K8S_PREVIOUS) helm/e2e/pods/run

.PHONY: compose
compose: ## Start deploy/compose.yaml with Docker, make a shop, run the printed commands and check their answers (UP=no: it runs already)
	@.ci/compose

.PHONY: helm-golden
helm-golden: bin/helm ## Write the golden renders of the chart anew
	helm/golden/render helm/golden

HELM_DOCS := bin/helm-docs --log-level warning --chart-search-root helm/storefront --sort-values-order file

.PHONY: helm-docs
helm-docs: bin/helm-docs ## Write the chart's README anew
	$(HELM_DOCS)

bin/helm:
	@mkdir -p bin
	GOWORK=off GOBIN="$(CURDIR)/bin" go install helm.sh/helm/v3/cmd/helm@v$(HELM_VERSION)

bin/helm-unittest:
	@mkdir -p bin
	GOWORK=off GOBIN="$(CURDIR)/bin" go install github.com/helm-unittest/helm-unittest/cmd/helm-unittest@v$(HELM_UNITTEST_VERSION)

bin/helm-docs:
	@mkdir -p bin
	GOWORK=off GOBIN="$(CURDIR)/bin" go install github.com/norwoodj/helm-docs/cmd/helm-docs@v$(HELM_DOCS_VERSION)
