# make demo | test | check | bench | corpus | contract | kafka | stream | lambda | foreign | infra | package | sbom
CARGO ?= cargo

.PHONY: demo test check fmt bench corpus contract kafka stream lambda foreign infra package sbom

## The sample events of several systems become Iceberg tables in .demo/
demo:
	$(CARGO) run --quiet --package sluice-local -- demo

## All tests: Rust, the catalogs on real services, the Kafka client and the whole path on a real broker, the function in cargo lambda, a
## foreign reader of what was written, the deployment
test: tests-rust contract kafka stream lambda foreign infra

.PHONY: tests-rust
tests-rust:
	$(CARGO) test --workspace

corpus:
	$(CARGO) run --quiet --package sluice-local -- corpus tests/corpus

## The contract of catalogs on every implementation; starts the services that this takes
contract:
	tests/contract/run.sh

## The whole path on a real Kafka: killed, rebalanced, cut off
stream:
	tests/stream/run.sh

## The Kafka client and the error topic on a mock cluster and on a real Kafka; starts that
kafka:
	tests/kafka/run.sh

## The sample events through `cargo lambda watch` and `cargo lambda invoke`
lambda:
	tests/lambda/run.sh

## DuckDB reads the demo's tables and compares them row by row with what Sluice says they hold
foreign:
	tests/foreign/run.sh

## The templates of infra/: linted, made in an AWS for tests, compared with the code
infra:
	tests/infra/run.sh

## The functions for Lambda: target/package/<function>.zip (FEATURES=glue,kafka-vendored,kafka-aws, ARCH=x86_64 | arm64)
package:
	infra/package.sh

## What each package is made of, as CycloneDX: target/package/<function>.cdx.json
sbom:
	infra/sbom.sh

## Formatting, lints, dependencies
check: fmt
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	bash -c '. tests/services/cargo.sh; $(CARGO) clippy "$${service_packages[@]}" --all-targets -- -D warnings'
	tests/deny.sh

fmt:
	$(CARGO) fmt --all --check

## Speed of the main path, as ratios
bench:
	$(CARGO) bench --workspace
