#!/usr/bin/env bash
# The same Lambda event (6 MB, 6,960 change events) through Sluice, PyIceberg, polars and DuckDB, in one run. Prints a table of ratios.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=target/compare/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import pyiceberg, polars, duckdb' 2>/dev/null ||
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/compare/requirements.txt
cargo build --quiet --release --package sluice-local
rm -rf target/compare/work && mkdir -p target/compare/work
"$venv/bin/python" tests/compare/compare.py target/release/sluice "$PWD/target/compare/work"
