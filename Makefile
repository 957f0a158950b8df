# SPDX-License-Identifier: Apache-2.0
# Short names for CMake's presets and for scripts/. `make help` lists them.
JOBS ?= $(shell nproc)
# On a system without apt that has all packages: make test INSTALL_DEPS=true
INSTALL_DEPS ?= scripts/install-deps
# More arguments for the program's build, for example BUILD_FLAGS='--target outrider_program'.
BUILD_FLAGS :=
# More arguments for ctest, for example CTEST_FLAGS='-R tokenizer' or CTEST_FLAGS='-C Check'.
CTEST_FLAGS ?=

.DEFAULT_GOAL := build
.PHONY: build demo goldens compare-tokenizers test check-fast test-clients test-wheel deb docs format format-check lint asan tsan fuzz clean help

build:  ## the program, build/outrider, and the library (Release)
	@{ command -v cmake && command -v ninja; } >/dev/null || { echo "cmake or ninja is missing: run scripts/install-deps build" >&2; exit 1; }
	cmake --preset release
	cmake --build --preset release --parallel $(JOBS) $(BUILD_FLAGS)

demo:  ## install what is missing, build, and generate with and without a draft model
	$(INSTALL_DEPS) build
	@# Builds the program only: the trainer, if libtorch is installed, would take most of the time.
	$(MAKE) --no-print-directory build BUILD_FLAGS='--target outrider_program'
	scripts/demo

test:  ## install what is missing, build and run all tests
	$(INSTALL_DEPS) dev train python gpu
	@# If one of these fails, the tests that need it are skipped with the reason.
	-$(INSTALL_DEPS) mpi
	-$(INSTALL_DEPS) docs
	cmake --preset dev
	cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev --parallel $(JOBS) $(CTEST_FLAGS)

check-fast:  ## build without the trainer and run the tests with the label fast
	$(INSTALL_DEPS) dev
	cmake --preset fast
	cmake --build --preset fast --parallel $(JOBS)
	ctest --preset fast --parallel $(JOBS) $(CTEST_FLAGS)

format:  ## put all sources into the project's format
	scripts/format

format-check:  ## say which sources are not in the project's format
	scripts/format --check

lint:  ## clang-tidy over the library and the program (LINT_FILES='src/io/gguf/gguf.cc ...': only these)
	scripts/lint $(LINT_FILES)

asan:  ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	scripts/sanitized-tests asan

tsan:  ## all tests under ThreadSanitizer
	scripts/sanitized-tests tsan

goldens:  ## tokenizers, templates and families against their references (after make test)
	ctest --preset dev --parallel $(JOBS) \
	  -R '(GgmlVocabulary|RankVocabulary|RealVocabulary|ModelTokenizers|TemplateGoldens|FamilyGolden|Quantised)'

compare-tokenizers:  ## every tokenizer of TOKENIZERS='folder ..' against its own library (after make test)
	scripts/compare-tokenizers $(TOKENIZERS)

test-clients:  ## the official clients of OpenAI and Anthropic against outrider serve (MODELS='a.gguf ..': on these)
	scripts/test-clients build-dev/outrider $(MODELS)

test-wheel:  ## the Python package by pip in a fresh virtual environment, as a wheel, and its tests (minutes)
	scripts/test-wheel

fuzz:  ## libFuzzer over the readers of outside files (FUZZ_SECONDS=60 each)
	scripts/fuzz

docs:  ## install what is missing and make the site of the documentation, build/docs/site
	$(INSTALL_DEPS) docs
	scripts/build-docs

deb:  ## Debian packages of the release build, in build/packages (after make build)
	cd build && cpack -G DEB -B packages

clean:  ## remove what was built
	rm -rf build build-dev build-fast build-asan build-tsan build-fuzz build-neon build-neon-here build-python-asan build-pip

help:  ## this list
	@sed -n 's/^\([a-z-]*\):  ## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 27
