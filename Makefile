# make help lists what can be done. Each target sets up what it needs in .venv and under target/; nothing needs root.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
python_id := import sys; print(sys.implementation.cache_tag + "-%d.%d.%d" % sys.version_info[:3])
PYTHON_ID := $(shell $(PYTHON) -c '$(python_id)')
# Stamps of what is set up, by Python: another one finds none, and everything is made anew.
DONE := $(VENV)/.done-$(PYTHON_ID)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
OUT ?= meyer2014
# The tests of a file share what its fixtures make, so they run in one process; tests/shared_fixtures.py says in which order.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
COVERED = --cov=routecast --cov-report= -W default
# One pip at a time: where make runs several jobs, two would write the same packages.
PIP_LOCK = flock $(CURDIR)/$(VENV)/.pip-lock
SETUP_GROUPS = test check bench docs

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1
# Compiled tests and modules are kept: to compile all of them takes each process 10 s.
unexport PYTHONDONTWRITEBYTECODE

rust_sources := $(shell find crates -name '*.rs' -o -name '*.bpf.o' -o -name Cargo.toml 2>/dev/null) Cargo.toml $(wildcard Cargo.lock)
python_sources := $(shell find packages -type f -not -name '*.so' -not -path '*/__pycache__/*' 2>/dev/null)
package_projects := pyproject.toml $(wildcard packages/*/pyproject.toml)
# Packages with an extension of their own; the other packages are Python.
COMPILED_PACKAGES = packages/routecast-lab packages/routecast-noc
PYTHON_PACKAGES = packages/routecast-virtual packages/routecast-plan packages/routecast-experiment packages/routecast-replications
COMMIT_TIME = $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(DONE)/extension ## run the study meyer2014, print its tables, write meyer2014/report.html
	@$(BIN)/routecast study meyer2014 --out $(OUT)

# What quick tests: all, or one package (PACKAGE=core, virtual, lab, noc, plan, experiment, replications).
TESTS_core = tests
TESTS_virtual = $(TREE)/virtual
TESTS_lab = $(TREE)/lab $(TREE)/multistage
TESTS_noc = $(TREE)/noc
TESTS_plan = $(TREE)/plan
TESTS_experiment = $(TREE)/experiment
TESTS_replications = $(TREE)/replications
TREE = packages/routecast/routecast

# Tiers: quick before each commit, test for a change as a whole (README, CI), test-thorough at night. docs/CONTRIBUTING.md
# says what belongs where.
.PHONY: quick
quick: $(DONE)/extension $(DONE)/group-test $(DONE)/group-check ## run what answers within a minute: no root, no wire, no wheel; PACKAGE=noc: of one package
	@[ -z "$(PACKAGE)" ] || [ -n "$(TESTS_$(PACKAGE))" ] || { echo 'make: PACKAGE is core, virtual, lab, noc, plan, experiment or replications' >&2; exit 2; }
	@$(BIN)/ruff format --check --quiet && $(BIN)/ruff check --quiet
	@$(PYTEST) $(TESTS_$(PACKAGE)) -m 'not (slow or wire or thorough)' --hypothesis-profile=desk

# Side by side, for both wait for wires much of the time; what Rust says comes in one piece.
.PHONY: test
test: $(DONE)/extension $(DONE)/group-test ## run every test but the thorough ones: Rust, Python, doctests, the commands of README and docs
	+@$(MAKE) --jobs=2 test-rust test-python

# The profile is the extension's, so that cargo compiles no crate twice. What debug assertions and checks of overflow
# find is for test-thorough.
.PHONY: test-rust
test-rust: ## run the Rust tests and doctests
	@said=$$(mktemp); exec 3>&1 > $$said 2>&1; trap 'cat $$said >&3; rm -f $$said' EXIT; \
	echo '── cargo test'; \
	cargo test --quiet --release --workspace --tests; \
	cargo test --quiet --release --workspace --doc

.PHONY: test-python
test-python: $(DONE)/extension $(DONE)/group-test ## run the Python tests, doctests and documented commands
	@echo '── pytest'
	@$(PYTEST) --hypothesis-profile=ci --durations=25

.PHONY: fuzz-models
fuzz-models: $(DONE)/extension ## solve and simulate 3,000 random routers, and count what the closed form gets wrong
	@$(BIN)/python benches/fuzz_models.py
	@$(BIN)/python benches/fuzz_models.py --builder mixed --routers 1000

.PHONY: coverage
coverage: $(DONE)/extension $(DONE)/group-test $(DONE)/group-coverage ## print the share of the lines that test covers which quick covers
	@rm -rf build/coverage && mkdir -p build/coverage
	@COVERAGE_FILE=build/coverage/quick $(PYTEST) -m 'not (slow or wire or thorough)' --hypothesis-profile=desk $(COVERED)
	@COVERAGE_FILE=build/coverage/test $(PYTEST) --hypothesis-profile=ci $(COVERED)
	@for tier in quick test; do COVERAGE_FILE=build/coverage/$$tier $(BIN)/coverage report --format=total --precision=2; done \
	  | paste -s | awk '{ printf "quick covers %s %% of the lines, test %s %%; quick over test: %.1f %%\n", $$1, $$2, 100 * $$1 / $$2 }'

.PHONY: test-thorough
test-thorough: $(DONE)/extension $(DONE)/group-test $(DONE)/group-bench dist/.done ## run every test at full length, from the wheel too, and benches on little work
	@echo '── cargo test, with debug assertions and checks of overflow'
	@ROUTECAST_THOROUGH=1 cargo test --quiet --workspace
	@echo '── pytest'
	@$(PYTEST) -m '' --hypothesis-profile=thorough --timeout=7200 --durations=50
	@echo '── benches'
	@$(BIN)/python benches/run.py --repetitions 3
	@$(BIN)/python benches/functions.py --quick
	@$(BIN)/python benches/sweeps.py --points 300 --repetitions 1
	@$(BIN)/python benches/growth.py --tasks 100 300 --repetitions 2

# With --jobs=2 the packages come in while cargo compiles.
.PHONY: setup
setup: $(DONE)/extension $(patsubst %,$(DONE)/group-%,$(SETUP_GROUPS)) ## build the extension and install what check and test need

.PHONY: check
check: setup ## format, lints, types, stubs, documentation; warnings are errors
	@$(MAKE) --jobs=$(JOBS) --output-sync=target check-rust check-python check-stub docs LLMS=0

# In the profile of the extension, whose macros and build scripts it shares.
.PHONY: check-rust
check-rust: ## cargo fmt and clippy
	@echo '── cargo fmt, clippy'
	@cargo fmt --all --check
	@cargo clippy --quiet --release --workspace --all-targets -- -D warnings

# All but the lab compiles for systems that are not Linux. A target that rustup cannot add is an error.
PORTABLE = aarch64-apple-darwin x86_64-pc-windows-gnu

.PHONY: check-portable
check-portable: ## compile and lint the extensions of the core and of noc for macOS and Windows, without linking
	@echo '── extensions of the core and of noc for $(PORTABLE)'
	@if command -v rustup > /dev/null; then rustup --quiet target add $(PORTABLE); fi
	@for target in $(PORTABLE); do \
	  PYO3_NO_PYTHON=1 cargo clippy --quiet --release --package routecast-py --package routecast-py-noc \
	    --target $$target -- -D warnings; \
	done

.PHONY: check-python
check-python: $(DONE)/extension $(DONE)/group-test $(DONE)/group-check $(DONE)/group-bench ## ruff and mypy
	@echo '── ruff'
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@echo '── mypy'
	@$(BIN)/mypy
	@MYPYPATH=benches:packages/routecast:packages/wheels:tests/page $(BIN)/mypy benches/run.py benches/tester.py benches/functions.py benches/sweeps.py benches/growth.py benches/multistage.py benches/xdp_live.py benches/independent_throughput.py benches/pdr_spread.py benches/peers/*.py benches/page.py benches/coverage.py benches/queues_by_load.py benches/recorded_traces.py benches/fuzz_models.py packages/ns3/side_by_side.py packages/wheels/portable.py

.PHONY: check-stub
check-stub: $(DONE)/extension $(DONE)/group-check ## compare the stub of the extension with the extension
	@echo '── stubs of the extensions'
	@$(BIN)/python -m mypy.stubtest routecast._core routecast.lab._lab routecast.noc._noc

LLMS ?= 1
.PHONY: docs
docs: $(DONE)/extension $(DONE)/group-docs ## build the documentation into build/docs, for language models too (llms.txt, llms-full.txt)
	@echo '── sphinx'
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -D llms_txt_enabled=$(LLMS) -c docs -d build/doctrees . build/docs

# Which ns-3 the module is built against, out of tree: debian (libns3-dev), or a wheel of PyPI: wheel-3.42, -3.43, -3.44.
NS3 ?= debian
NS3_STANDARD = $(if $(findstring wheel,$(NS3)),20,17)

.PHONY: ns3
ns3: $(DONE)/extension ## build the ns-3 module, its examples and tests out of tree, and run them (NS3=wheel-3.44: another ns-3)
	@echo '── ns-3 module ($(NS3))'
	@mkdir -p build
	@prefix=$$(packages/ns3/get $(NS3) $(BIN)/python $(CURDIR)/build); \
	cmake -S packages/ns3 -B build/ns3-$(NS3) -DNS3_PREFIX=$$prefix -DCMAKE_CXX_STANDARD=$(NS3_STANDARD) $(if $(findstring wheel,$(NS3)),-DPRECOMPILED=ON) > build/ns3-$(NS3).log || { cat build/ns3-$(NS3).log; exit 1; }
	@cmake --build build/ns3-$(NS3) --parallel $(JOBS) -- --quiet
	@packages/ns3/check build/ns3-$(NS3) $(BIN)/python

.PHONY: ns3-contrib
ns3-contrib: ## put the module into contrib/ of a source tree of ns-3 (NS3_SOURCE=DIR), build it there and run its tests
	@[ -x "$(NS3_SOURCE)/ns3" ] || { echo 'make ns3-contrib: say NS3_SOURCE=DIR, a source tree of ns-3 (Debian: apt-get source ns3)' >&2; exit 2; }
	@rm -rf "$(NS3_SOURCE)/contrib/router-resources" && cp -r packages/ns3/router-resources "$(NS3_SOURCE)/contrib/"
	@cd "$(NS3_SOURCE)" && ./ns3 configure --enable-examples --enable-tests --enable-modules=router-resources && ./ns3 build
	@cd "$(NS3_SOURCE)" && ./test.py --no-build --suite=router-resources

.PHONY: bench
bench: $(DONE)/extension $(DONE)/group-bench ## run the peers and routecast on the same work and print the ratios
	@$(BIN)/python benches/run.py
	@$(BIN)/python benches/tester.py
	@$(BIN)/python benches/functions.py
	@$(BIN)/python benches/sweeps.py
	@$(BIN)/python benches/page.py

.PHONY: wheel
wheel: dist/.done ## build the wheels of all packages for any Linux with glibc 2.17 or newer into dist

# They do not run on this machine, so what their files say of themselves is read. In a folder of their own: who installs
# dist/*.whl wants none of them.
.PHONY: wheels-portable
wheels-portable: export SOURCE_DATE_EPOCH ?= $(COMMIT_TIME)
wheels-portable: $(DONE)/pip $(DONE)/group-wheel ## build wheels of the core and of noc for macOS, Windows and Linux on ARM into dist/portable, and read them
	@rm -rf dist/portable
	@PATH=$(CURDIR)/$(BIN):$$PATH python packages/wheels/portable.py dist/portable

.PHONY: format
format: $(DONE)/group-check ## rewrite the sources in their format
	@cargo fmt --all
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check --quiet --fix

.PHONY: corpus
corpus: $(DONE)/extension $(DONE)/group-test ## write anew what tests/corpus holds of outputs; the commit says why it changed
	@ROUTECAST_REWRITE_CORPUS=1 $(PYTEST) -m '' tests/corpus tests/calibration/test_board.py -p no:cacheprovider

.PHONY: pages
pages: $(DONE)/extension $(DONE)/group-test ## write what README and docs show of outputs and pictures anew
	@ROUTECAST_REWRITE_PAGES=1 $(BIN)/python -m pytest tests/docs -p no:cacheprovider
	@$(BIN)/routecast study meyer2014 --out build/meyer2014 > /dev/null
	@cp build/meyer2014/figures/fig8b.svg docs/images/meyer2014-throughput.svg
	@$(BIN)/routecast study napi_power --out build/napi_power > /dev/null
	@cp build/napi_power/figures/idle.svg docs/images/napi-power-idle.svg
	@$(BIN)/routecast power optimise examples/green.router.toml --target "p99 < 100 us" --figure docs/images/green-front.svg > /dev/null
	@$(BIN)/routecast study msr_energy --out build/msr_energy > /dev/null
	@cp build/msr_energy/figures/frontier.svg docs/images/msr-energy-frontier.svg
	@$(BIN)/routecast noc optimum examples/hotspot.noc.toml --load 1 --figure packages/routecast-noc/routecast/noc/docs/images/noc-hotspot-map.svg > /dev/null
	@$(BIN)/routecast noc simulate examples/mesh8x8.noc.toml --figure packages/routecast-noc/routecast/noc/docs/images/noc-latency.svg > /dev/null
	@$(BIN)/routecast study kvm_tuning --out build/kvm_tuning > /dev/null
	@cp build/kvm_tuning/figures/single.svg docs/images/kvm-one-router.svg
	@cp build/kvm_tuning/figures/priorities.svg docs/images/kvm-priorities.svg
	@cp build/kvm_tuning/figures/parallel.svg docs/images/kvm-parallel.svg
	@cp build/kvm_tuning/figures/multistage.svg docs/images/kvm-multistage.svg
	@$(BIN)/routecast study vmware_msr --out build/vmware_msr > /dev/null
	@cp build/vmware_msr/figures/xen.svg docs/images/xen-livelock.svg
	@$(BIN)/routecast study diversified_router --out build/diversified_router > /dev/null
	@cp build/diversified_router/figures/over-time-queue-manager.svg docs/images/diversified-over-time.svg
	@cp build/diversified_router/figures/engines.svg docs/images/diversified-engines.svg

.PHONY: bpf
bpf: ## compile the tester's eBPF programs anew, into the repository; the only target that needs clang
	@sh crates/tester/bpf/compile "$${ROUTECAST_CLANG:-clang}" crates/tester/bpf/objects

.PHONY: wasm
wasm: ## compile the simulator for pages anew, into the package; needs rustup target add wasm32-unknown-unknown
	@$(PYTHON) crates/wasm/compile.py packages/routecast/routecast/data/wasm

.PHONY: clean
clean: ## remove everything that was built
	@rm -rf $(VENV) target build site dist meyer2014 packages/routecast/routecast/*.so packages/*/routecast/*/*.so

# --group needs pip 25.1, newer than what a fresh venv brings.
$(DONE)/pip:
	@if [ "$$($(BIN)/python -c '$(python_id)' 2>/dev/null)" != "$(PYTHON_ID)" ]; then \
	  echo '── $(VENV) for $(PYTHON_ID)'; \
	  rm -rf $(VENV); \
	  $(PYTHON) -m venv $(VENV) || { echo 'make: needs the venv module (Debian: apt install python3-venv)' >&2; exit 3; }; \
	fi
	@$(BIN)/python -m pip install --upgrade 'pip>=25.1' 'maturin>=1.9,<2' 'hatchling>=1.27' editables
	@mkdir -p $(DONE) && touch $@

$(DONE)/group-%: pyproject.toml | $(DONE)/pip
	@echo '── dependencies for $*'
	@$(PIP_LOCK) $(BIN)/python -m pip install --group $*
	@touch $@

# Editable installs: Python sources are used where they are, only Rust changes make them stale. What they depend on comes
# in while cargo compiles. Python packages come first: maturin looks for what the lab asks for.
$(DONE)/extension: $(rust_sources) $(package_projects) | $(DONE)/pip
	@echo '── routecast, its packages and their extensions (cargo, release)'
	@$(BIN)/python -c 'import sys, tomllib; [print(*(each for each in tomllib.load(open(path, "rb"))["project"]["dependencies"] if not each.startswith("routecast")), sep="\n") for path in sys.argv[1:]]' \
	  $(package_projects) > $(DONE)/dependencies.txt
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH; \
	$(PIP_LOCK) python -m pip install -r $(DONE)/dependencies.txt & dependencies=$$!; \
	cargo build --quiet --release --package routecast-py --package routecast-py-lab --package routecast-py-noc --features routecast-py/extension-module,routecast-py-lab/extension-module,routecast-py-noc/extension-module; \
	wait $$dependencies; \
	$(PIP_LOCK) python -m pip install --no-deps --no-build-isolation $(patsubst %,--editable %,$(PYTHON_PACKAGES)); \
	for package in . $(COMPILED_PACKAGES); do (cd $$package && $(PIP_LOCK) maturin develop --release --quiet); done
	@touch $@

# zig links against the symbols of an old glibc; cargo keeps what it compiles so apart from what runs here. The time of the
# commit in place of the time of the build, and bills of materials without the folder: two builds of one commit on one
# machine are the same bytes, in any folder.
dist/.done: export SOURCE_DATE_EPOCH ?= $(COMMIT_TIME)
dist/.done: $(rust_sources) $(python_sources) $(package_projects) README.md | $(DONE)/pip $(DONE)/group-wheel
	@echo '── wheels'
	@rm -rf dist
	@export VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH; \
	for package in . $(COMPILED_PACKAGES); do \
	  (cd $$package && maturin build --release --quiet --out $(CURDIR)/dist --zig --compatibility manylinux2014 --auditwheel check); \
	done; \
	python packages/wheels/bill.py dist/*.whl; \
	for package in $(PYTHON_PACKAGES); do (cd $$package && hatchling build --target wheel --directory $(CURDIR)/dist > /dev/null); done
	@touch $@
