#!/usr/bin/env bash
# measure.sh: records per second through a real broker on this machine, by the share of bad records; and how long lag takes to go after a pause.
# Figures are for docs/performance.md; nothing is compared. RECORDS (300000) and the program's build (release) can be changed.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${SLUICE_TEST_KAFKA:-}" ]; then
  cargo build --release --package sluice-local --package sluice-stream --features sluice-local/kafka,sluice-stream/kafka --bin sluice --bin feed
  exec tests/services/with-kafka.sh "$0" "$@"
fi
bin=$(realpath "${CARGO_TARGET_DIR:-target}")/release
records=${RECORDS:-300000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # NAME BAD_PERCENT [ARGUMENTS of run]: fills the topics, reads them to the end with a lake of its own
  local name=$1 bad=$2; shift 2
  mkdir -p "$work/$name"
  "$bin/feed" "$records" "$bad" >"$work/$name/sluice.toml"
  (cd "$work/$name" && TIMEFORMAT='%R s, CPU %U + %S s' && time "$bin/sluice" run --until end --start "$since" "$@" >out.jsonl 2>log) 2>"$work/$name/time"
  python3 - "$work/$name/out.jsonl" "$name" "$(tail -n 1 "$work/$name/time")" <<'PYTHON'
import json, sys
last = json.loads([line for line in open(sys.argv[1]) if line.startswith("{")][-1])
wall, cpu = float(sys.argv[3].split()[0]), [float(x) for x in sys.argv[3].split("CPU")[1].replace("s", "").split("+")]
records = last["records"]
print(f"{sys.argv[2]:<24} {records:>8} records  {wall:6.2f} s  {records / wall:>9.0f}/s  CPU {sum(cpu):5.2f} s = {sum(cpu) / records * 1e6:5.1f} us/record  {last['events']} events  {last['dead_letters']} dead")
PYTHON
}

# Each run begins behind the records of the one before.
now() { date -u +%Y-%m-%dT%H:%M:%S.%3NZ; }
for bad in 0 1 100; do
  since=$(now); run "bad-$bad%" "$bad" --group "bad-$bad"
done
since=$(now); run "two lanes" 0 --group lanes --concurrency 2

echo "a pause of 10 s at 20,000 records/s:"
mkdir -p "$work/pause"; cp "$work/bad-0%/sluice.toml" "$work/pause/"
since=$(now)
(cd "$work/pause" && exec "$bin/sluice" run --group pause --start "$since" --report-every-s 1 >out.jsonl 2>log) & reader=$!
sleep 3
"$bin/feed" 800000 0 20000 >/dev/null & feeder=$!
sleep 10; kill -STOP $reader; sleep 10; kill -CONT $reader
wait $feeder; sleep 5; kill -TERM $reader; wait $reader
python3 - "$work/pause/out.jsonl" <<'PYTHON'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
start = rows[0]["at_ms"]
peak = max(rows, key=lambda row: row["lag"])
after = [row for row in rows if row["at_ms"] > peak["at_ms"] and row["lag"] <= 20000]
print(f"  highest lag {peak['lag']}; one second of traffic or less {(after[0]['at_ms'] - peak['at_ms']) / 1000:.0f} s later; highest rate {max(row['records_per_s'] for row in rows)}/s")
PYTHON
