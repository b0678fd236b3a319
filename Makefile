# `make test` and `make demo` set up everything they need in .venv and reuse it.
PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
BACKENDS := tensorflow jax torch
PYTEST := $(VENV)/bin/python -m pytest

# Some CPUs announce bfloat16 tile instructions that their virtual machine cannot run.
export ONEDNN_MAX_CPU_ISA ?= AVX512_CORE_FP16
export TF_CPP_MIN_LOG_LEVEL ?= 2
# TensorFlow takes its quicker matrix products by itself only on CPUs with AVX-512.
export TF_ENABLE_ONEDNN_OPTS ?= 1

# Tests run each compiled program once or twice: compiling quickly matters more than running quickly, and the tests of a file
# stay in one process, which has compiled most of what they need.
QUICK_XLA := --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
# Two processes share the cores. With several threads each, those of torch would wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1

.PHONY: help setup demo test lint $(addprefix test-,$(BACKENDS)) format prove bench clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/installed  ## Create .venv with the package, all backends and the tools

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[jax,torch,plots,dev]"
	touch $@

demo: $(VENV)/installed  ## Train a small model in a few minutes and see what it learned
	$(VENV)/bin/python -m training.demo

test: lint $(addprefix test-,$(BACKENDS))  ## Lint, import contract, and the suite on all three backends

lint: $(VENV)/installed  ## Ruff and the import contract
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

$(addprefix test-,$(BACKENDS)): test-%: $(VENV)/installed  ## The suite on one backend, or a part: make test-jax TESTS=tests/layers
	KERAS_BACKEND=$* XLA_FLAGS="$(QUICK_XLA)" $(ONE_THREAD) $(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder $(TESTS)

format: $(VENV)/installed  ## Let ruff format and sort
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

prove: $(VENV)/installed  ## Every proof at full size; writes docs/evidence.md
	$(VENV)/bin/python -m tests.prove

bench: $(BENCH_VENV)/installed  ## This package beside its peers; writes docs/benchmarks.md, and the speed of docs/bridges.md
	$(BENCH_VENV)/bin/python -m benchmarks.all

$(BENCH_VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[jax,torch,plots,bench]"
	touch $@

clean:  ## Remove the environments and caches
	rm -rf $(VENV) $(BENCH_VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
