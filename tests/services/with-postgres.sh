#!/usr/bin/env bash
# with-postgres.sh COMMAND…: runs COMMAND with DATABASE_URI set to an empty PostgreSQL of its own on a free loopback port, and stops it afterwards.
set -euo pipefail
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 || true)
[ -x "${bin:-}/initdb" ] || bin=$(dirname "$(command -v initdb 2>/dev/null || echo /nonexistent/initdb)")
if [ ! -x "$bin/initdb" ]; then
  echo "PostgreSQL is needed and there is no server on this machine (Debian: apt-get install postgresql)" >&2
  exit 1
fi
data=$(mktemp -d /tmp/sluice-postgres.XXXXXX)
run=()
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
  chown postgres "$data"
  run=(su postgres -s /bin/bash -c)
else
  run=(bash -c)
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' 2>/dev/null || echo 54329)
stop() {
  "${run[@]}" "$bin/pg_ctl -D $data/db -m immediate stop" >/dev/null 2>&1 || true
  rm -rf "$data"
}
trap stop EXIT
cd "$data"
"${run[@]}" "$bin/initdb -D $data/db -U sluice --auth=trust --no-sync" >/dev/null
"${run[@]}" "$bin/pg_ctl -D $data/db -w -t 60 -l $data/log -o '-h 127.0.0.1 -p $port -k $data -F' start" >/dev/null
cd "$OLDPWD"
export DATABASE_URI="postgres://sluice@127.0.0.1:$port/postgres"
"$@"
