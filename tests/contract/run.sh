#!/usr/bin/env bash
# The contract suite on every catalog, each on the real service. A service that cannot be had fails the run and is named.
set -euo pipefail
cd "$(dirname "$0")/../.."
for version in 2.3.10 3.1.3; do tests/services/hms/install.sh "$version" >/dev/null; done
HMS_2_READER=$(tests/contract/java.sh 2.3.10)
HMS_3_READER=$(tests/contract/java.sh 3.1.3)
export HMS_2_READER HMS_3_READER PATH=$PWD/tests/services:$PATH
. tests/services/cargo.sh
test=(cargo test "${service_packages[@]}" --test contract)
"${test[@]}" --no-run # so that no service waits for a compiler
# One test at a time: they share the services, and those the machine.
with-postgres.sh with-moto.sh with-rest.sh with-hms.sh 2.3.10 with-hms.sh 3.1.3 with-hms.sh 2.3.10-framed "${test[@]}" "$@" -- --test-threads=1
