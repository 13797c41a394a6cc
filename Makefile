# What a developer or an owner runs. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

export CGO_ENABLED := 0

# Tools are kept outside the checkout, one folder for each version.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/holdfast
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/golangci-lint-$(GOLANGCI_VERSION)/golangci-lint

# Where internal/e2e/tools.sh puts the real clients that the end-to-end tests drive.
export HOLDFAST_TEST_TOOLS ?= $(CACHE)/test-tools

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
UNIT := $$(go list ./... | grep -v /internal/e2e)
FUZZTIME ?= 20s
BENCH ?= .
BENCHTIME ?= 1s

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Serve on 127.0.0.1:8787: ANTHROPIC_API_KEY as an account if set, else a simulation (needs Go only)
	@exec bin/holdfast serve --try

.PHONY: build
build: ## Build bin/holdfast
	@go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/holdfast ./functions/local

.PHONY: test
test: fmt vet lint unit e2e ## Everything CI runs (needs Go, Node and Python)

.PHONY: fmt
fmt: ## Fail on a file that gofmt would change
	@changed=$$(gofmt -l functions internal); \
	if [ -n "$$changed" ]; then echo "gofmt would change:"; echo "$$changed"; exit 1; fi

.PHONY: vet
vet: ## go vet
	@go vet ./...

.PHONY: lint
lint: $(GOLANGCI) ## golangci-lint, as .golangci.yml says
	@$(GOLANGCI) run ./...

$(GOLANGCI):
	@echo "building golangci-lint $(GOLANGCI_VERSION), once"
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

.PHONY: unit
unit: ## Unit tests
	@go test $(UNIT)

.PHONY: tools
tools: ## Install the clients that the end-to-end tests drive, once, into the cache
	@bash internal/e2e/tools.sh

.PHONY: e2e
e2e: tools ## End-to-end tests with real clients; a skipped test fails
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	go test -count=1 -v ./internal/e2e/... | tee "$$log"; \
	if grep -q -e '--- SKIP' "$$log"; then echo "a test was skipped"; exit 1; fi

.PHONY: race
race: ## Unit tests under the race detector (needs a C compiler)
	@CGO_ENABLED=1 go test -race $(UNIT)

.PHONY: fuzz
fuzz: ## Every fuzz test for FUZZTIME (20s)
	@for pkg in $(UNIT); do \
	  for name in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$pkg"; \
	  done; \
	done

.PHONY: bench
bench: ## Benchmarks; BENCH selects, BENCHTIME lengthens
	@go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(UNIT)

.PHONY: cover
cover: ## Unit test coverage by function
	@go test -coverprofile coverage.out $(UNIT)
	@go tool cover -func coverage.out | tail -n 1

.PHONY: clean
clean: ## Remove what was built
	@rm -rf bin coverage.out
