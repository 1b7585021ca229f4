#!/usr/bin/env bash
# The whole path on a real broker: `sluice run` is killed, rebalanced and cut off. Starts the broker, builds the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/services/cargo.sh
cargo build "${service_packages[@]}" --bin sluice
test=(cargo test "${service_packages[@]}" --test stream)
"${test[@]}" --no-run # so that the broker does not wait for a compiler
SLUICE_PROGRAM=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/sluice
export SLUICE_PROGRAM
# One test at a time: some of them restart the broker.
tests/services/with-kafka.sh "${test[@]}" "$@" -- --test-threads=1 --nocapture
