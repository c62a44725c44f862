# Two commands to know: make demo, make test.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo demo-postgres soak test mutants coverage bench bench-peers scaling lint format docs build release clean bootstrap

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: bootstrap ## a server, 50 devices and a bad network; nothing lost (5 minutes at most)
	swift build -c release --product martlet
	"$$(swift build -c release --show-bin-path)/martlet" demo $(ARGS)

demo-postgres: bootstrap ## the same with two servers on PostgreSQL and Redis, and others who write plain SQL
	swift build -c release --product martlet
	"$$(swift build -c release --show-bin-path)/martlet" demo --databases scripts/databases --dir martlet-demo-postgres $(ARGS)

soak: bootstrap ## the same work for a quarter of an hour on each storage: memory, descriptors and times stay flat
	@scripts/long soak $(ARGS)

test: ## every check, as continuous integration runs it
	@scripts/test

mutants: ## changes of meaning, one at a time: does a test catch each? (an hour)
	@scripts/mutants $(ARGS)

coverage: ## what of the code the tests run, by module (a quarter of an hour)
	@scripts/coverage $(ARGS)

bench: ## the benchmarks (Benchmarks/README.md)
	@scripts/bench $(ARGS)

bench-peers: ## beside Kinto and Anki's sync server, on the same data (a quarter of an hour)
	@scripts/bench-peers $(ARGS)

scaling: ## a thousand to a million records, one to 200 devices; measured and drawn
	@scripts/scaling $(ARGS)

lint: ## the layout of the code, changed by nobody
	@scripts/stages/lint

format: ## lay the code out by .swift-format
	swift format format --in-place --parallel --recursive Sources Tests scripts Package.swift

docs: bootstrap ## the guides and the API pages as one site, into .build/docs/site
	@scripts/docs

build: bootstrap ## a debug build
	swift build

release: bootstrap ## a release build of the command
	swift build -c release --product martlet

bootstrap:
	@scripts/bootstrap

clean: ## remove what was built
	rm -rf .build Benchmarks/.build
