#!/usr/bin/env bash
# The templates of infra/: linted, made in moto (an AWS for tests), and compared with the code.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
if ! command -v "$python" >/dev/null; then
  if [ "${CI:-}" = true ]; then echo "the checks of infra/ need Python 3" >&2; exit 1; fi
  echo "SKIPPED the checks of infra/: they need Python 3, and there is none"
  exit 0
fi
venv=target/infra/venv
requirements=tests/infra/requirements.txt
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
if ! cmp --silent "$requirements" "$venv/installed.txt"; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$venv/installed.txt"
fi
export SAM_CLI_TELEMETRY=0 PYTHONDONTWRITEBYTECODE=1
"$venv/bin/cfn-lint" infra/sam/*.yaml
"$venv/bin/sam" validate --lint --region eu-central-1 --template infra/sam/template.yaml >/dev/null
# A build reads what it packs: of a copy with a stand-in for the function, so that nobody deploys that.
copy=target/infra/copy
rm -rf "$copy" && mkdir -p "$copy/target/package"
cp -r infra "$copy/"
(cd "$copy/target/package" && echo stand-in >bootstrap &&
  for name in ingest redrive compact rewrite-manifests expire-snapshots remove-orphans; do "$OLDPWD/$venv/bin/python" -m zipfile -c "$name.zip" bootstrap; done)
"$venv/bin/sam" build --region eu-central-1 --template "$copy/infra/sam/template.yaml" --build-dir "$copy/build" >"$copy/build.log" 2>&1 ||
  { cat "$copy/build.log" >&2; exit 1; }
"$venv/bin/pytest" --quiet -p no:cacheprovider --disable-warnings tests/infra
