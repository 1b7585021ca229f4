#!/usr/bin/env bash
# The Kafka client and the error topic: on librdkafka's mock cluster, and on a real Kafka with every kind of security; secrets in an AWS for tests (moto).
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/services/cargo.sh
test=(cargo test "${service_packages[@]}" --lib --test kafka --test config)
"${test[@]}" --no-run # so that no service waits for a compiler
# One test at a time: some kill the broker.
tests/services/with-moto.sh tests/services/with-kafka.sh bash -c 'AWS_ENDPOINT_URL=$SLUICE_TEST_AWS_ENDPOINT exec "$@"' - "${test[@]}" "$@" -- --test-threads=1
