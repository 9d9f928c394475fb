#!/bin/sh
# Make .venv with the locked packages and this project in it; safe to repeat. PYTHON=... chooses the interpreter.
set -eu
venv=.venv
bin=$venv/bin

suits() {
    command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

fail() {
    echo "install: $1" >&2
    exit 1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        suits "$PYTHON" || fail "PYTHON=$PYTHON is not a Python >= 3.11"
        echo "$PYTHON"
        return
    fi
    for candidate in python3.11 python3 python3.12 python3.13 python; do
        if suits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    fail "needs Python >= 3.11; none found as python3 or python3.11 (set PYTHON=/path/to/python)"
}

# venv needs ensurepip, which some distributions package apart; virtualenv and uv do without.
make_venv() {
    "$1" -m venv --clear $venv >/dev/null 2>&1 && return
    "$1" -m virtualenv --quiet --clear $venv 2>/dev/null && return
    uv venv --quiet --clear --python "$1" $venv 2>/dev/null && return
    rm -rf $venv
    fail "$1 cannot make a virtual environment: install its venv module (Debian: the package python3-venv), virtualenv or uv"
}

# uv reads none of pip's settings: hand over where to find packages.
tell_uv() {
    if [ -z "${UV_FIND_LINKS:-}" ] && [ -n "${PIP_FIND_LINKS:-}" ]; then
        export UV_FIND_LINKS="$PIP_FIND_LINKS"
    fi
    index=${PIP_INDEX_URL:-$($bin/python -m pip config get global.index-url 2>/dev/null || true)}
    if [ -z "${UV_DEFAULT_INDEX:-}" ] && [ -n "$index" ]; then
        export UV_DEFAULT_INDEX="$index"
    fi
}

with_uv() {
    uv=$(command -v uv || true)
    if [ -z "$uv" ]; then
        $bin/python -m pip install --quiet --disable-pip-version-check uv || return 1
        uv=$bin/uv
    fi
    "$uv" pip install --quiet --python $bin/python -r requirements.lock || return 1
    "$uv" pip install --quiet --python $bin/python --no-deps -e .
}

with_pip() {
    $bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock || return 1
    $bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
}

suits $bin/python || make_venv "$(find_python)"
tell_uv
echo "install: locked packages into $venv"
with_uv || { echo "install: uv did not manage; trying pip" >&2; with_pip; } || fail "the packages of requirements.lock could not be installed; see above"
