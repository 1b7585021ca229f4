#!/usr/bin/env bash
# Licences, sources and banned crates. The advisory database is a Git repository that not every build machine reaches, so advisories are
# checked only where ADVISORIES=1 is set.
set -euo pipefail
if ! command -v cargo-deny >/dev/null; then
  cargo install cargo-deny --locked --version 0.20.2
fi
checks=(bans licenses sources)
[ "${ADVISORIES:-0}" = 1 ] && checks+=(advisories)
cargo deny --all-features check "${checks[@]}"
