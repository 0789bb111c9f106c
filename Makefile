# `make` alone lists the targets. Everything here works from a fresh clone; what is fetched lands in .cache/ or the module cache.
SHELL := /bin/sh
.DEFAULT_GOAL := help

MODULES := shared edge control engine-relay deploy
LINT_VERSION := 2.15.0
FUZZTIME ?= 30s
SOAKTIME ?= 120m

# One test package at a time per core; the race detector's exit pause is for programs that print, ours do not.
TEST := GORACE=atexit_sleep_ms=50 go test

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build every binary into bin/
	@mkdir -p bin
	go build -o bin/ work

.PHONY: run
run: build ## Start the local stack in the foreground (PORT_BASE=18080 moves its ports, BACKENDS=real wants a real Redis and Kafka)
	@exec bin/local run

.PHONY: test
test: build ## Run every test on real PostgreSQL, Redis and Kafka (REQUIRE_REAL=1 fails without them)
	go vet work
	go vet -tags chaos work
	bin/local exec -- $(MAKE) --no-print-directory test-packages test-system

# Inside `bin/local exec`: the services' addresses are in the environment.
.PHONY: test-packages test-system
test-packages:
	$(TEST) -race -timeout 8m $$(go list work | grep -v -e '/deploy/systemtest' -e '/deploy/faults$$')
test-system:
	$(TEST) -parallel 16 -timeout 9m storefront.internal/deploy/systemtest/...
	FAULTS_BIN=$(CURDIR)/bin $(TEST) -timeout 9m storefront.internal/deploy/faults

.PHONY: soak
soak: build ## Run the system tests at full length (SOAKTIME=120m at most)
	SOAK=1 bin/local exec -- $(TEST) -v -parallel 16 -timeout $(SOAKTIME) storefront.internal/deploy/systemtest/...
	SOAK=1 bin/local exec -- $(TEST) -v -run 'TestADelete|TestFetches' storefront.internal/control/internal/postgres

.PHONY: faults
faults: build ## Break a whole deployment and judge what is left (MINUTES=10 SEED=n FAULTS=N1,N2 REDIS=false, REPORT=file)
	bin/faults run -minutes $(or $(MINUTES),10) -seed $(or $(SEED),0) -faults "$(FAULTS)" -redis=$(or $(REDIS),true) -bin $(CURDIR)/bin \
		-markdown "$(REPORT)"

.PHONY: bench
bench: build ## Run the benchmarks (BENCH=pattern)
	bin/local exec -- go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $$(go list work | grep -v '/deploy/systemtest')

.PHONY: fuzz
fuzz: build ## Run each fuzz target for FUZZTIME (30s)
	bin/local exec -- .ci/fuzz $(FUZZTIME)

.PHONY: schemathesis
schemathesis: build ## Play requests made from the OpenAPI documents against both listeners (needs Python; EXAMPLES=200 SEED=1)
	@.ci/schemathesis $(or $(EXAMPLES),200) $(or $(SEED),1)

.PHONY: lint
lint: bin/golangci-lint ## Check formatting, the import law, and the size of files and functions
	@for m in $(MODULES); do echo "lint $$m"; (cd $$m && ../bin/golangci-lint run ./...) || exit 1; done
	@.ci/filesize

bin/golangci-lint:
	@mkdir -p bin
	@if golangci-lint version 2>/dev/null | grep -q 'version $(LINT_VERSION) '; then ln -sf "$$(command -v golangci-lint)" $@; \
	else GOBIN="$(CURDIR)/bin" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINT_VERSION); fi

.PHONY: tidy
tidy: ## Tidy every module
	@for m in $(MODULES); do echo "tidy $$m"; (cd $$m && go mod tidy) || exit 1; done

.PHONY: generate
generate: ## Write the generated references (CONFIG.md, METRICS.md) anew
	go generate work
