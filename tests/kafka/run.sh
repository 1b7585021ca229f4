#!/usr/bin/env bash
# The Kafka client and the error topic: on librdkafka's mock cluster, and on a real Kafka with every kind of security.
set -euo pipefail
cd "$(dirname "$0")/../.."
test=(cargo test --package sluice-kafka --package sluice-kafka-tests --features sluice-kafka-tests/broker)
"${test[@]}" --no-run # so that no service waits for a compiler
# One test at a time: some kill the broker.
tests/services/with-kafka.sh "${test[@]}" "$@" -- --test-threads=1
