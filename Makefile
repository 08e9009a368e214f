PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs docs-links package bench bridges reproduce torture mutants clean

# The environment is updated when the list of dependencies changes: .demo has the package alone, .ready the test tools.
$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.ready: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

demo: $(VENV)/.demo
	mkdir -p out
	$(BIN)/livens warm-up --quiet
	$(BIN)/livens run double-four-bar --out out/double-four-bar.h5 --force
	$(BIN)/livens plot out/double-four-bar.h5 --out out
	$(BIN)/livens view out/double-four-bar.h5 --out out/double-four-bar.html

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Files are given to the two processes as a whole: what the tests of a file compile and simulate they share.
test: lint
	$(BIN)/pytest -q -n 2 --dist loadfile

# The documentation site; warnings are errors.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -j auto -d out/doctrees docs out/docs
	@echo "open out/docs/index.html"

docs-links: $(VENV)/.docs
	$(BIN)/sphinx-build -b linkcheck -q -d out/doctrees docs out/links

# Wheel and source distribution, each installed into an empty environment and tried there.
package:
	$(PYTHON) -m venv out/package
	out/package/bin/python -m pip install --quiet build
	out/package/bin/python -m build --outdir out/dist .
	for file in out/dist/livens-*.whl out/dist/livens-*.tar.gz; do \
	    rm -rf out/empty && $(PYTHON) -m venv out/empty && out/empty/bin/python -m pip install --quiet $$file && \
	    (cd out && empty/bin/python ../examples/slider_crank.py && empty/bin/livens run simple-pendulum --json) || exit 1; \
	done

reproduce: $(VENV)/.ready
	$(BIN)/pytest -q -n 2 --dist loadfile -m slow tests

# Kills, strange input, very long runs, a busy machine; SCALE=0.01 does a hundredth of it, ONLY=kills,files some parts.
SCALE ?= 1
torture: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m torture --scale $(SCALE) $(if $(ONLY),--only $(ONLY))

# Whether the tests notice that the source is wrong; COUNT=20 tries twenty changes, LEARN=1 keeps which test noticed which.
mutants: $(VENV)/.ready
	PYTHONPATH=tests $(BIN)/python -m mutants $(if $(COUNT),--count $(COUNT)) $(if $(ONLY),--only $(ONLY)) $(if $(LEARN),--learn)

# ONLY=mechanisms,slider times only the cases with one of these texts in their names.
bench: $(VENV)/.bench
	mkdir -p out
	$(BIN)/livens bench --picture out/work-precision.png $(if $(ONLY),--only $(ONLY))

# JAX and PyTorch are large: they have an environment of their own. Of this version of PyTorch, the build for processors
# alone is taken wherever pip finds one; TORCH=torch takes the newest, which brings gigabytes for graphics cards.
TORCH ?= torch==2.13.0
$(VENV)-bridges/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-bridges
	$(VENV)-bridges/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-bridges/bin/python -m pip install --quiet '$(TORCH)'
	$(VENV)-bridges/bin/python -m pip install --quiet --editable '.[jax,torch,sympy,control,fmu,gym]' dysts fmpy hypothesis numba pytest
	touch $@

bridges: $(VENV)-bridges/.ready
	$(VENV)-bridges/bin/python -m pytest -q tests/bridges

clean:
	rm -rf $(VENV) $(VENV)-bridges out
