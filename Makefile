# make study [PRESET=smoke] [JOBS=2]   the whole study: tables and figures in results/<preset>
# make test                            every test
# make ui | bench | lint | clean       look at runs in MLflow | time again | check style | drop caches
PRESET ?=
JOBS ?= 0
BIN := .venv/bin

export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := true
export MLFLOW_DISABLE_TELEMETRY := true
export HF_HUB_DISABLE_TELEMETRY := 1
export GIT_PYTHON_REFRESH := quiet
unexport PYTHONDONTWRITEBYTECODE # compiling the packages again at every start would cost seconds

.PHONY: study test ui bench lint clean
.DELETE_ON_ERROR:

study: .venv/.installed
	@exec $(BIN)/python -m pipelines.study --preset "$(PRESET)" --jobs $(JOBS)

test: .venv/.installed
	@OMP_NUM_THREADS=1 exec $(BIN)/python -m pytest -n 2 --dist loadgroup

ui: .venv/.installed
	@exec $(BIN)/mlflow ui --host 127.0.0.1 --port 5000 --workers 1 --backend-store-uri sqlite:///mlflow.db

bench: .venv/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" exec $(BIN)/dvc repro --force --single-item bench

lint: .venv/.installed
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

clean:
	rm -rf .scratch .pytest_cache .ruff_cache dvc_plots
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/.installed: requirements.lock pyproject.toml
	@rm -f $@
	@sh scripts/install.sh
	@touch $@
