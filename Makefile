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

# Where the tools.sh of internal/e2e and internal/test/awstest put the real clients that the
# end-to-end tests drive, what stands for AWS, and the SAM CLI.
export HOLDFAST_TEST_TOOLS ?= $(CACHE)/test-tools
SAM := $(HOLDFAST_TEST_TOOLS)/aws/sam/bin/sam
export SAM_CLI_TELEMETRY := 0

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
UNIT := $$(go list ./... | grep -v /internal/e2e)
FUZZTIME ?= 20s
BENCH ?= .
BENCHTIME ?= 1s

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## Serve on 127.0.0.1:8787: ANTHROPIC_, OPENAI_ and XAI_API_KEY as accounts if set, else a simulation (needs Go only)
	@exec bin/holdfast serve --try

.PHONY: build
build: ## Build bin/holdfast
	@go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/holdfast ./functions/local

.PHONY: function
function: ## Build bin/gateway and bin/poller, the Lambdas, for this machine
	@$(call build-function,,bin/gateway,gateway)
	@$(call build-function,,bin/poller,poller)

# What an environment of Lambda starts: no C library, no paths of this machine, no symbols,
# and none of the RPC mode that only an old runtime used. $(1) is the target, empty for this
# machine; $(2) the file; $(3) the function.
build-function = $(1) go build -trimpath -buildvcs=false -tags lambda.norpc -ldflags "-s -w -X main.version=$(VERSION)" -o $(2) ./functions/$(3)

# The template's parameter Architecture and its words. `sam build` does not hand the
# parameter on, so whoever deploys for x86_64 says it to both, as the targets here do.
# A deployment with --guided saves its answer, and a later build has to agree with it.
SAVED_ARCHITECTURE := $(firstword $(shell cat samconfig.local.toml samconfig.toml 2>/dev/null | sed -n 's/.*Architecture=[\\"]*\([a-z0-9_]*\).*/\1/p'))
ARCHITECTURE ?= $(or $(SAVED_ARCHITECTURE),arm64)
goarch-arm64 := arm64
goarch-x86_64 := amd64

.PHONY: build-Gateway build-Poller
build-Gateway build-Poller: # what `sam build` calls, with the folder in ARTIFACTS_DIR
	@$(if $(filter-out $(ARCHITECTURE),$(SAVED_ARCHITECTURE)),$(if $(DEPLOYING),,$(error this builds for $(ARCHITECTURE), but your saved answers say Architecture=$(SAVED_ARCHITECTURE), and a function that has the other processor's program answers every request with 502. Leave ARCHITECTURE out, or deploy by: make deploy ARCHITECTURE=$(ARCHITECTURE))))
	@$(call build-function,GOOS=linux GOARCH=$(or $(goarch-$(ARCHITECTURE)),$(error ARCHITECTURE is arm64 or x86_64)),$(ARTIFACTS_DIR)/bootstrap,$(function-$@))

function-build-Gateway := gateway
function-build-Poller := poller

# The most that a function may weigh when it is uploaded, in bytes.
MAX_ZIP := 6000000

.PHONY: validate
validate: $(SAM) ## Check the template, and build and weigh the functions as a deployment does
	@$(SAM) validate --lint --region us-east-1
	@$(SAM) build
	@for function in Gateway Poller; do $(dir $(SAM))python internal/test/awstest/weigh.py .aws-sam/build/$$function $(MAX_ZIP); done

$(SAM):
	@bash internal/test/awstest/tools.sh "$(HOLDFAST_TEST_TOOLS)" sam

# More of the template's parameters, such as PARAMETERS="LogLevel=debug MemorySize=256".
PARAMETERS ?=

# The Python of the SAM CLI, which can ask AWS.
SAM_PYTHON := $(dir $(SAM))python

.PHONY: deploy
deploy: $(SAM) ## Build and deploy into your AWS account, as your saved answers say; ARCHITECTURE=x86_64 or PARAMETERS="LogLevel=debug" change one
	@config=$(CURDIR)/$$(python3 infra/deploy.py config); \
	architecture=$(if $(filter command line environment,$(origin ARCHITECTURE)),$(ARCHITECTURE),$$($(SAM_PYTHON) infra/deploy.py architecture)); \
	architecture=$${architecture:-arm64}; \
	mapfile -t parameters < <(python3 infra/deploy.py parameters Architecture=$$architecture $(PARAMETERS)); \
	$(if $(filter command line environment,$(origin ARCHITECTURE)),python3 infra/deploy.py save Architecture=$(ARCHITECTURE);) \
	DEPLOYING=1 ARCHITECTURE=$$architecture $(SAM) build --config-file "$$config" --parameter-overrides Architecture=$$architecture; \
	$(SAM) deploy --config-file "$$config" --parameter-overrides "$${parameters[@]}"; \
	$(SAM) list stack-outputs --config-file "$$config" --stack-name "$$(python3 infra/deploy.py stack)" --output json | $(SAM_PYTHON) internal/test/awstest/lines.py || echo "deployed; the stack's outputs say how to use it"

.PHONY: deploy-guided
deploy-guided: $(SAM) ## The same, and before it asks you each parameter; your answers are kept in samconfig.local.toml, which git ignores
	@python3 infra/deploy.py begin
	@ARCHITECTURE=$(ARCHITECTURE) $(SAM) build --parameter-overrides Architecture=$(ARCHITECTURE)
	@$(SAM) deploy --guided --config-file $(CURDIR)/samconfig.local.toml
	@$(MAKE) --no-print-directory deploy

.PHONY: deploy-local
deploy-local: tools ## Deploy into a stand-in of AWS on this machine, until interrupted
	@bash internal/test/awstest/deploy-local.sh "$(HOLDFAST_TEST_TOOLS)"

.PHONY: transcript
transcript: tools ## The life of a deployment on a stand-in for AWS, with times: deploy, first turns of each agent, upgrade, alarms, a second region, removal
	@go test -count=1 -v -run '^TestDeployed$$' ./internal/e2e | grep -E '^ {0,4}--- |^(ok|FAIL)'

.PHONY: quick
quick: fmt vet ## Format, vet and the tests that need Go alone, in about a minute; tests that need more are skipped and counted
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	HOLDFAST_TEST_TOOLS= go test -v $(UNIT) >"$$log" && failed= || failed=1; \
	grep -E '^(ok|FAIL)' "$$log" || true; \
	if [ -n "$$failed" ]; then grep -vE '^(=== |ok|\?)|^ *--- (PASS|SKIP)' "$$log"; exit 1; fi; \
	echo "$$(grep -c -e '^--- PASS' "$$log") tests passed; $$(grep -c -e '^ *--- SKIP' "$$log" || true) need a stand-in for AWS or real clients: make test"

.PHONY: test
test: quick tidy lint validate unit e2e ## Everything CI runs except sam-local (needs Go, Node and Python)

.PHONY: tidy
tidy: ## Fail where go.mod or go.sum is not what `go mod tidy` writes
	@go mod tidy -diff

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
unit: tools ## Unit tests; a skipped test fails
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	failed=; go test -v $(UNIT) | tee "$$log" | grep --line-buffered -E '^(ok|FAIL)' || failed=1; \
	if [ -n "$$failed" ]; then grep -vE '^(=== |ok|\?)|^ *--- PASS' "$$log"; exit 1; fi; \
	if grep -e '--- SKIP' "$$log"; then echo "a test was skipped"; exit 1; fi

.PHONY: tools
tools: ## Install the clients that tests drive and what stands for AWS, once, into the cache
	@bash internal/e2e/tools.sh
	@bash internal/test/awstest/tools.sh "$(HOLDFAST_TEST_TOOLS)"

.PHONY: e2e
e2e: tools ## End-to-end tests with real clients and a deployment; a skipped test fails
	@$(call run-e2e,,-skip '^TestSAMLocal$$')

.PHONY: sam-local
sam-local: tools ## Every event of events/ by the SAM CLI, in containers (Linux; without an engine, as root, it starts its own)
	@$(call run-e2e,bash internal/test/awstest/engine.sh "$(HOLDFAST_TEST_TOOLS)",-run '^TestSAMLocal$$')

# $(1) is what runs the tests, if anything does; $(2) says which.
run-e2e = log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(1) go test -count=1 -v $(2) ./internal/e2e/... | tee "$$log"; \
	if grep -q -e '--- SKIP' "$$log"; then echo "a test was skipped"; exit 1; fi

.PHONY: race
race: ## Unit tests under the race detector (needs a C compiler)
	@CGO_ENABLED=1 go test -race $(UNIT)

.PHONY: fuzz
fuzz: ## Every fuzz test for FUZZTIME (20s)
	@for pkg in $(UNIT); do \
	  for name in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$pkg"; \
	  done; \
	done

.PHONY: bench
bench: ## Benchmarks; BENCH selects, BENCHTIME lengthens
	@go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(UNIT)

.PHONY: measure
measure: ## What a request costs, beside a direct call and a bare proxy
	@go run ./internal/tool/bench 2>/dev/null

.PHONY: measure-function
measure-function: tools ## Size, start, and processor time and memory of a request, of the Lambdas
	@go test -run '^$$' -bench 'Weight|Start|Serve|Process' -benchtime $(BENCHTIME) ./functions/gateway ./functions/poller | grep -v -e ^PASS -e ^ok

.PHONY: cost
cost: ## What it costs in AWS, counted: a thousand requests, an idle month, a busy one
	@go run ./internal/tool/bill

.PHONY: cover
cover: ## Unit test coverage by function
	@go test -coverprofile coverage.out $(UNIT)
	@go tool cover -func coverage.out | tail -n 1

# The systems and processors that a release has a program for.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: release
release: ## Build bin/release: a static program and its archive for each of PLATFORMS, with checksums
	@rm -rf bin/release; mkdir -p bin/release
	@for platform in $(PLATFORMS); do \
	  name=holdfast_$(VERSION)_$${platform/\//_}; \
	  echo "building $$name"; \
	  GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o "bin/release/$$name/holdfast" ./functions/local; \
	  cp README.md LICENSE CHANGELOG.md "bin/release/$$name/"; \
	  tar -C bin/release --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$$(git log -1 --format=%ct 2>/dev/null || echo 0) -czf "bin/release/$$name.tar.gz" "$$name"; \
	  rm -rf "bin/release/$$name"; \
	done
	@cd bin/release && sha256sum -- *.tar.gz >SHA256SUMS && cat SHA256SUMS

# What builds and runs containers here, and the certificates that the image trusts.
ENGINE ?= docker
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt

.PHONY: image
image: ## Build the container image holdfast:VERSION (where a container engine answers)
	@mkdir -p bin/image/data && chmod 0700 bin/image/data
	@GOOS=linux go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/image/holdfast ./functions/local
	@cp infra/Dockerfile bin/image/ && cp "$(CERTIFICATES)" bin/image/ca-certificates.crt
	@$(ENGINE) build -t holdfast:$(VERSION) bin/image

.PHONY: clean
clean: ## Remove what was built
	@rm -rf bin coverage.out .aws-sam

.PHONY: clean-tools
clean-tools: ## Remove the linter, the clients and the stand-in for AWS from the cache folder
	@rm -rf "$(CACHE)"
