# Two commands do everything: `make run` shows the loops at work, `make test` passes the tests.
# Each makes its own environment from the lock (requirements/*.txt); Python >= 3.11, pip and make suffice.

PYTHON ?= python3
RUN_ENV := .venv/run
DEV_ENV := .venv/dev
DEV := $(DEV_ENV)/bin
# Workers for the tests; 0 runs them in this process. Many tests wait for other programs, so there are more than cores.
TEST_WORKERS ?= 5

# What these start compiles a module once, even where the environment says otherwise: answers come in half the time.
run test bench: export PYTHONDONTWRITEBYTECODE =

# Virtual hours that `make soak` plays, and the seed of its first run.
HOURS ?= 50
SEED ?= 1000

.PHONY: run test soak check format bench docs lock control-plane manifests clean

run: $(RUN_ENV)/.ready  ## Show the loops at work on the embedded cluster, with the shipped example, here and in a browser
	$(RUN_ENV)/bin/kubetide up --ui $(ARGS)

test: check  ## Everything that must pass: format, lint, types, import contracts, tests
	$(DEV)/python -m pytest -n $(TEST_WORKERS) $(ARGS)

soak: $(DEV_ENV)/.ready  ## Play random scenarios with random faults and look for what is wrong: HOURS=200 SEED=5000
	$(DEV)/python -m tests.soak --hours $(HOURS) --seed $(SEED) $(ARGS)

check: $(DEV_ENV)/.ready  ## Format, lint, types and import contracts only
	$(DEV)/ruff format --check .
	$(DEV)/ruff check .
	$(DEV)/mypy
	$(DEV)/lint-imports --no-cache

format: $(DEV_ENV)/.ready  ## Mend format and what lint can mend by itself
	$(DEV)/ruff check --fix .
	$(DEV)/ruff format .

bench: $(DEV_ENV)/.ready  ## Print the speed figures, one JSON line each (CPU time, ratio to a floor measured beside)
	@$(DEV)/python -m bench $(ARGS)

docs: .venv/docs/.ready $(RUN_ENV)/.ready  ## Build the notebook, and the site into site/; a broken link or a page without a place is an error
	$(RUN_ENV)/bin/python -m tools.notebook
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build $(ARGS)

lock: $(DEV_ENV)/.ready  ## Resolve the dependencies anew (needs uv on PATH)
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra live --extra tls --extra optimize --extra protobuf --group build pyproject.toml -o requirements/run.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra live --extra tls --extra optimize --extra protobuf --extra aws --extra gce --extra azure --extra grpc --group build pyproject.toml -o requirements/image.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--extra live --extra tls --extra optimize --extra protobuf --extra aws --extra grpc --extra gce --extra azure --extra dask --extra tune --extra sweep --group dev pyproject.toml -o requirements/dev.txt
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group build --group docs -o requirements/docs.txt

control-plane:  ## Build kubectl, a whole Kubernetes, client-go programs, Helm, kwok, the VPA programs and kube-state-metrics for the tests (Go, or pip for it; some minutes once)
	$(PYTHON) -m tools.plane build control-plane clients helm kwok vpa kube-state-metrics

manifests:  ## Render deploy/manifests from the chart (needs Helm: make control-plane)
	$(PYTHON) -m tools.manifests

clean:  ## Remove what the commands above made
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis kubetide-out

# The outer pip installs into the new environment, so that a Python without ensurepip will do.
.venv/%/.ready: requirements/%.txt pyproject.toml
	$(PYTHON) -m venv --without-pip --clear .venv/$*
	$(PYTHON) -m pip --python .venv/$*/bin/python install --quiet --require-hashes -r requirements/$*.txt
	$(PYTHON) -m pip --python .venv/$*/bin/python install --quiet --no-deps --no-build-isolation -e .
	.venv/$*/bin/python -m compileall -q -j 0 src
	touch $@
