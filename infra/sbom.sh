#!/usr/bin/env bash
# sbom.sh: what each package is made of, as CycloneDX 1.5: target/package/<function>.cdx.json. FEATURES as for package.sh. Brings cargo-cyclonedx into target/ where it is
# not there. Features are those that the workspace resolves to, so a bill may name a crate more than is in the package, never one less.
set -euo pipefail
cd "$(dirname "$0")/.."
features=${FEATURES:-glue,kafka-vendored,kafka-aws}
version=0.5.9
tools=target/package/tools
if ! command -v cargo-cyclonedx >/dev/null && [ ! -x "$tools/bin/cargo-cyclonedx" ]; then
  cargo install --quiet cargo-cyclonedx --locked --version "$version" --root "$tools"
fi
export PATH=$PWD/$tools/bin:$PATH

# It leaves one beside the Cargo.toml of every crate of the workspace.
name=sluice-bill
clean() { find . -path ./target -prune -o -name "$name.json" -exec rm {} +; }
trap clean EXIT
cargo cyclonedx -qq --format json --spec-version 1.5 --target x86_64-unknown-linux-gnu --manifest-path functions/ingest/Cargo.toml \
  --no-default-features --features "lambda,$features" --override-filename "$name"
mkdir -p target/package
for function in ingest redrive compact rewrite-manifests expire-snapshots remove-orphans; do
  mv "functions/$function/$name.json" "target/package/$function.cdx.json"
  echo "target/package/$function.cdx.json: $(grep -c '"bom-ref"' "target/package/$function.cdx.json") components"
done
