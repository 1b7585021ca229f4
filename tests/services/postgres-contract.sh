#!/usr/bin/env bash
# The contract suite of catalogs, and a small pipeline, on a real PostgreSQL.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --quiet --package sluice-catalog --example sql_contract
warehouse=$(mktemp -d /tmp/sluice-warehouse.XXXXXX)
trap 'rm -rf "$warehouse"' EXIT
status=0
tests/services/with-postgres.sh bash -c "target/debug/examples/sql_contract \"\$DATABASE_URI\" $warehouse" || status=$?
if [ $status = 77 ]; then
  if [ "${CI:-}" = true ]; then echo "PostgreSQL is needed and cannot be installed" >&2; exit 1; fi
  echo "SKIPPED the PostgreSQL contract: there is no server on this machine (Debian: apt-get install postgresql)"
  exit 0
fi
exit $status
