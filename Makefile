# All that a newcomer needs; `make` lists it. The build itself is CMake's: see CMakePresets.json.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PREFIX ?= /usr/local
BUILD := build/release
PROGRAM := $(BUILD)/implicit-diffusion
SOURCES = $(shell git ls-files '*.cpp' '*.hpp')
# Clang 14 cannot compile the headers of LibTorch 1.13 as C++20.
UNITS = $(shell git ls-files '*.cpp' ':!tests/consumer' ':!src/torch' ':!tests/torch' ':!src/images' ':!tests/images' \
  ':!apps/implicit-diffusion/images' ':!*/networks/options.cpp' ':!*/networks/bench.cpp' ':!*/networks/check_chain.cpp' \
  ':!examples/own_network.cpp' ':!*/networks/weights.cpp' ':!*/networks/verify_model.cpp' ':!*/denoising_mixture/network*.cpp' ':!*/ebm_network/run.cpp' \
  ':!*/ebm_network/check.cpp')

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: program ## install what is missing, build the program, run the Langevin reward experiment
	$(PROGRAM) run langevin-reward --overwrite

# The program alone needs neither GoogleTest nor the other packages of the tests. A tree that is there is taken as it
# is, so that running does not undo what `make test` has built.
.PHONY: program
program: ## build the program only
	@scripts/setup core
	@test -f $(BUILD)/build.ninja || cmake --preset release -DIMPLICIT_DIFFUSION_DEVELOPER=OFF -DIMPLICIT_DIFFUSION_NETWORKS=OFF -DIMPLICIT_DIFFUSION_MPI=OFF
	@cmake --build --preset release --target implicit-diffusion

.PHONY: configure
configure:
	@scripts/setup test networks mpi
	@cmake --preset release -DIMPLICIT_DIFFUSION_DEVELOPER=ON -DIMPLICIT_DIFFUSION_NETWORKS=ON -DIMPLICIT_DIFFUSION_MPI=ON

.PHONY: build
build: configure ## build everything: library, program, tests, examples
	@cmake --build --preset release

.PHONY: test
test: build ## build everything and run all tests
	@ctest --preset release -j "$$(nproc)"

.PHONY: images
images: ## install LibTorch and Fashion-MNIST, build, pretrain and finetune a diffusion model of images (about 30 minutes)
	@scripts/setup core networks images
	@test -f $(BUILD)/build.ninja && grep -q IMPLICIT_DIFFUSION_NETWORKS:BOOL=ON $(BUILD)/CMakeCache.txt || \
	  cmake --preset release -DIMPLICIT_DIFFUSION_DEVELOPER=OFF -DIMPLICIT_DIFFUSION_NETWORKS=ON
	@cmake --build --preset release --target implicit-diffusion implicit-diffusion-networks
	$(PROGRAM) run fashion-mnist --overwrite

.PHONY: reliability
reliability: configure ## kills, signals, failing disks and power cuts: what survives, counted (about 2 minutes)
	@cmake --build --preset release --target reliability_test
	@$(BUILD)/tests/reliability_test --full --gtest_brief=1

.PHONY: fuzz
fuzz: ## the readers of files on bytes that nobody would write, for a minute each (libFuzzer)
	@scripts/setup fuzz
	@cmake --preset fuzz
	@cmake --build --preset fuzz
	@scripts/fuzz

.PHONY: bench
bench: program ## fixed problems, verified, then timed
	$(PROGRAM) bench

.PHONY: bench-rivals
bench-rivals: program ## the same work in JAX, torch, diffusers and others beside ours (3 GB of Python packages)
	@scripts/bench-rivals

.PHONY: lint
lint: ## formatting and clang-tidy, over all tracked files
	@scripts/setup test mpi lint
	@clang-format --dry-run -Werror $(SOURCES)
	@cmake --preset tidy
	@printf '%s\n' $(UNITS) | xargs -P "$$(nproc)" -n 1 clang-tidy --quiet -p build/tidy

.PHONY: format
format: ## format all tracked files in place
	@scripts/setup lint
	@clang-format -i $(SOURCES)

.PHONY: install
install: program ## install library and program under PREFIX (default /usr/local)
	@cmake --build --preset release --target implicit_diffusion_libraries
	@cmake --install $(BUILD) --prefix '$(PREFIX)'

.PHONY: clean
clean: ## remove the build folder
	@rm -rf build
