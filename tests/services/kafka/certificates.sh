#!/usr/bin/env bash
# certificates.sh FOLDER: makes a certificate authority of its own there, and a server's and a client's certificate by it, for 127.0.0.1. Valid for two days.
set -euo pipefail
cd "$1"
run() { openssl "$@" 2>openssl.log || { cat openssl.log >&2 && exit 1; }; }
run req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Sluice tests" -keyout ca.key -out ca.pem
for who in server client; do
  run req -newkey rsa:2048 -nodes -subj "/CN=$who" -keyout "$who.key" -out "$who.csr"
  run x509 -req -days 2 -in "$who.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") -out "$who.pem"
done
# The same key behind a passphrase, for tests of passphrases.
run pkcs8 -topk8 -in client.key -passout pass:key-secret -out client-encrypted.key
cat server.key server.pem >server-store.pem
