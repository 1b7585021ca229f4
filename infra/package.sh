#!/usr/bin/env bash
# package.sh: builds the functions as target/package/<function>.zip, for AWS Lambda's provided.al2023.
#   FEATURES=glue,kafka-vendored,kafka-aws   what to build in: catalogs (glue, hive,s3, s3tables, rest, sql), and for an error topic the Kafka client with an OpenSSL of
#                   its own (kafka-vendored) and MSK's IAM and Secrets Manager (kafka-aws); comma-separated
#   ARCH=x86_64     or arm64, which needs Rust's target aarch64-unknown-linux-gnu
set -euo pipefail
cd "$(dirname "$0")/.."
features=${FEATURES:-glue,kafka-vendored,kafka-aws}
case ${ARCH:-x86_64} in
  x86_64) arch=--x86-64 ;;
  arm64) arch=--arm64 ;;
  *) echo "ARCH is x86_64 or arm64" >&2; exit 2 ;;
esac

venv=target/package/venv
requirements=infra/package-requirements.txt
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! cmp --silent "$requirements" "$venv/installed.txt"; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$venv/installed.txt"
fi
export PATH="$PWD/$venv/bin:$PATH"

if [ "$arch" = --arm64 ] && [[ $features == *kafka* ]]; then
  # librdkafka's configure script takes CC for the target and knows no other way to cross-compile; its version script names symbols that only its own tests have.
  for language in cc c++; do
    printf '#!/bin/sh\nexec cargo-lambda zig %s -- -g -fno-sanitize=all -target aarch64-linux-gnu "$@"\n' "$language" >"target/package/arm64-$language"
    chmod +x "target/package/arm64-$language"
  done
  export HOST_CC=gcc HOST_CXX=g++ CC=$PWD/target/package/arm64-cc CXX=$PWD/target/package/arm64-c++ LDFLAGS=-Wl,--undefined-version
fi

# AWS-LC gathers entropy of its own at the start, up to a second of a cold start; the kernel's is what a Lambda environment has anyway.
export AWS_LC_SYS_NO_JITTER_ENTROPY=1
functions=(ingest redrive compact rewrite-manifests expire-snapshots remove-orphans)
# shellcheck disable=SC2046 # one option for each function
cargo lambda build --profile lambda --locked $(printf -- '--package sluice-%s ' "${functions[@]}") --no-default-features --features "lambda,$features" "$arch" --output-format zip
started=()
for function in "${functions[@]}"; do
  zip=target/package/$function.zip
  cp "${CARGO_TARGET_DIR:-target}/lambda/$function/bootstrap.zip" "$zip"
  echo "$zip: $(stat -c %s "$zip") bytes, ${ARCH:-x86_64}, features: $features"
  python3 -m zipfile -e "$zip" "target/package/unpacked/$function"
  chmod +x "target/package/unpacked/$function/bootstrap"
  started+=("target/package/unpacked/$function/bootstrap")
done
if [ "$(uname -m)" = x86_64 ] && [ "$arch" = --x86-64 ]; then
  python3 infra/startup.py "${started[@]}"
fi
