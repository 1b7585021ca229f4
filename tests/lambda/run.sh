#!/usr/bin/env bash
# What README says of cargo lambda: `cargo lambda watch` serves the function on a free loopback port, `cargo lambda invoke` sends it every sample event, and each answer is
# what events/README.md says. cargo-lambda is installed once from PyPI into $SLUICE_SERVICES_DIR (target/services by default).
set -euo pipefail
cd "$(dirname "$0")/../.."
version=1.9.2
cache=${SLUICE_SERVICES_DIR:-${CARGO_TARGET_DIR:-target}/services}
fail() { echo "cargo lambda: $1" >&2; exit 1; }

venv=$cache/cargo-lambda-$version
if [ ! -f "$venv/ready" ]; then
  mkdir -p "$cache"
  (
    flock 9
    [ -f "$venv/ready" ] && exit 0
    python3 -m venv "$venv" || fail "Python 3 with venv is needed (Debian: apt-get install python3-venv)"
    # Without zig, its linker for packages: what runs here is linked as ever.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "cargo-lambda==$version" || fail "pip install cargo-lambda==$version failed"
    touch "$venv/ready"
  ) 9>"$cache/cargo-lambda.lock" || exit 1
fi
PATH=$(cd "$venv/bin" && pwd):$PATH

cargo build --quiet --package sluice-ingest --bin ingest # what the first invocation would wait for; tests/it builds it in the same way
work=$(mktemp -d /tmp/sluice-lambda.XXXXXX)
watch=
stop() {
  [ -z "$watch" ] || { kill "$watch" 2>/dev/null || true; wait "$watch" 2>/dev/null || true; }
  rm -rf "$work"
}
trap stop EXIT
cp events/sluice.toml "$work"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
SLUICE_CONFIG=$work/sluice.toml cargo lambda watch --ignore-changes --package sluice-ingest --invoke-address 127.0.0.1 --invoke-port "$port" >"$work/log" 2>&1 &
watch=$!
for ((tenths = 0; ; tenths++)); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  if [ $tenths -gt 300 ] || ! kill -0 "$watch" 2>/dev/null; then tail -n 20 "$work/log" >&2; fail "watch did not start"; fi
  sleep 0.1
done
for event in events/kafka/*.json; do
  answer=$work/$(basename "$event")
  timeout 300 cargo lambda invoke --invoke-address 127.0.0.1 --invoke-port "$port" ingest --data-file "$event" >"$answer" 2>"$work/invoke.log" ||
    { cat "$answer" "$work/invoke.log" >&2; tail -n 20 "$work/log" >&2; fail "$event was not answered"; }
done
python3 tests/lambda/compare.py events/README.md "$work"
