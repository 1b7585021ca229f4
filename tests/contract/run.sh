#!/usr/bin/env bash
# The contract suite on every catalog, each on the real service. A service that cannot be had fails the run and is named.
set -euo pipefail
cd "$(dirname "$0")/../.."
services=tests/services
test=(cargo test --package sluice-contract --features postgres,aws,rest)
"${test[@]}" --no-run # so that no service waits for a compiler
"$services/with-postgres.sh" "$services/with-moto.sh" "$services/with-rest.sh" "${test[@]}" -- --test-threads=1 # the tests share the services
