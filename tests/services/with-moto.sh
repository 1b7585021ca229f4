#!/usr/bin/env bash
# with-moto.sh COMMAND…: runs COMMAND beside an AWS of its own (moto: Glue with compare-and-set, S3, S3 Tables) on a free loopback port, and stops it afterwards.
# COMMAND sees SLUICE_TEST_AWS_ENDPOINT, with a bucket `lake` and table buckets `lake0` to `lake31`, SLUICE_TEST_AWS_LOG, a file with a line for each
# request, and credentials and a region that mean nothing elsewhere. Any name of a region is an empty one. The server is installed once from PyPI into
# $SLUICE_SERVICES_DIR (target/services by default). Ends with 70 when it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_SERVICES_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/services}
fail() { echo "the service moto (AWS for tests) cannot be had: $1" >&2; exit 70; }

python=$cache/moto-5.2.5/bin/python
if [ ! -f "$cache/moto-5.2.5/ready" ]; then
  mkdir -p "$cache"
  (
    flock 9
    [ -f "$cache/moto-5.2.5/ready" ] && exit 0
    python3 -m venv "$cache/moto-5.2.5" || fail "Python 3 with venv is needed (Debian: apt-get install python3-venv)"
    "$python" -m pip install --quiet --disable-pip-version-check 'moto[server]==5.2.5' || fail "pip install moto[server]==5.2.5 failed"
    touch "$cache/moto-5.2.5/ready"
  ) 9>"$cache/moto.lock" || exit 70
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$(mktemp /tmp/sluice-moto.XXXXXX)
export MOTO_ALLOW_NONEXISTENT_REGION=true
"$python" "$here/moto_server.py" -H 127.0.0.1 -p "$port" >"$log" 2>&1 &
server=$!
stop() {
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  rm -f "$log"
}
trap stop EXIT
for _ in $(seq 600); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ready=1 && break
  kill -0 "$server" 2>/dev/null || { tail -n 20 "$log" >&2; fail "it ended"; }
  sleep 0.1
done
[ "${ready:-}" = 1 ] || fail "it did not answer within 60 seconds"

export SLUICE_TEST_AWS_ENDPOINT="http://127.0.0.1:$port"
export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=eu-central-1 AWS_EC2_METADATA_DISABLED=true
export SLUICE_TEST_AWS_LOG=$log
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL
"$python" - <<'PYTHON' || fail "its buckets cannot be made"
import os

import boto3

endpoint = os.environ["SLUICE_TEST_AWS_ENDPOINT"]
region = os.environ["AWS_REGION"]
boto3.client("s3", region, endpoint_url=endpoint).create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": region})
tables = boto3.client("s3tables", region, endpoint_url=endpoint)
for number in range(32):
    tables.create_table_bucket(name=f"lake{number}")
PYTHON
"$@"
