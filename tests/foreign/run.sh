#!/usr/bin/env bash
# A reader that shares no code with Sluice reads what it wrote: the demo's lake and the lake of every corpus case.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  if [ "${CI:-}" = true ]; then echo "the foreign reader needs Python 3" >&2; exit 1; fi
  echo "SKIPPED the foreign reader: it needs Python 3, and there is none"
  exit 0
fi
venv=target/foreign/venv
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv"
fi
"$venv/bin/python" -c 'import duckdb, duckdb_extension_iceberg, duckdb_extension_avro, pyarrow, pytz' 2>/dev/null ||
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/foreign/requirements.txt
cargo build --quiet --package sluice-local
lakes=target/foreign/lakes
rm -rf "$lakes" && mkdir -p "$lakes"
target/debug/sluice demo --dir "$lakes/demo" >/dev/null
target/debug/sluice corpus tests/corpus --keep "$lakes" >/dev/null || true # its verdicts are `make corpus`' business
# Tables of format version 3 with the deletion vectors of another program.
# The whole workspace is named so that features, and with them everything that is compiled already, are those of its tests.
cargo build --quiet --workspace --example sample_tables
target/debug/examples/sample_tables "$PWD/$lakes/samples" >/dev/null
printf '[catalog]\ntype = "sql"\nname = "sluice"\nwarehouse = "warehouse"\nuri = "sqlite://catalog.db"\n\n[source]\nid = "samples"\nepoch = 0\n\n[[source.formats]]\ntopic = "*"\ntype = "row"\n\n[route]\ntable = "shop.{topic}"\nallow = ["*"]\n' >"$lakes/samples/sluice.toml"
"$venv/bin/python" tests/foreign/compare.py target/debug/sluice "$lakes"
# Maintenance must not change what a foreign reader sees.
for config in "$lakes"/*/sluice.toml; do
  printf '\n[maintenance.compact]\nmin_input_files = 2\nmin_delete_files = 1\n[maintenance.manifests]\nmin_manifests = 2\n[maintenance.expire]\nmin_snapshots_to_keep = 1\n' >>"$config"
  code=0
  target/debug/sluice --config "$config" --json maintain >"$(dirname "$config")/maintain.json" || code=$?
  # 3: a case without tables.
  if [ "$code" != 0 ] && [ "$code" != 3 ]; then cat "$(dirname "$config")/maintain.json" >&2; exit 1; fi
done
"$venv/bin/python" tests/foreign/compare.py target/debug/sluice "$lakes"
"$venv/bin/python" tests/foreign/differential.py target/debug/sluice "$PWD/$lakes" "${DIFFERENTIAL_SEEDS:-40}"
