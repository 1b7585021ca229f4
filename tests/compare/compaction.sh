#!/usr/bin/env bash
# compaction.sh [CASE…]: the tables of the compaction bench, compacted by `sluice compact` and by Spark's rewrite_data_files, each from the same files. Prints a
# table. Without cases the four that are quick; `large-10M-2percent` takes minutes. Takes a JDK 17, Maven and Python 3; what comes from PyPI and Maven Central goes below
# $SLUICE_COMPARE_DIR (target/compare by default), where the tables are made too.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
compare=${SLUICE_COMPARE_DIR:-$target/compare}
mkdir -p "$compare"
compare=$(realpath "$compare")
python=$compare/spark-venv/bin/python
[ -x "$python" ] || python3 -m venv "$compare/spark-venv"
"$python" -c 'import pyspark' 2>/dev/null || "$compare/spark-venv/bin/pip" install --quiet --disable-pip-version-check -r tests/compare/spark/requirements.txt
[ -d "$compare/spark-jars" ] || mvn -q -B -f tests/compare/spark/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$compare/spark-jars"
# As the bench is built: in minutes, without link-time optimisation.
cargo build --quiet --profile bench --package sluice-bench --package sluice-local --bench compaction --bin sluice
[ $# -gt 0 ] || set -- append-200x5000 upsert-200x5000 upsert-120+120 upsert-500+500
rm -rf "$compare/compaction" && mkdir -p "$compare/compaction"
make_table() { cargo bench --quiet --package sluice-bench --bench compaction -- --make "$1" "$2"; }
for case in "$@"; do
  make_table "$case" "$compare/compaction/$case" >"$compare/compaction/$case.metadata"
done
"$python" tests/compare/compaction.py "$target/release/sluice" "$compare/spark-jars" "$compare/compaction" "$@"
