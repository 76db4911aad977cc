#!/usr/bin/env bash
# scripts/setup, with a package manager that is a few lines of shell: it waits for a lock, and for nothing else.
set -euo pipefail

setup=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fake() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/$1"
  chmod +x "$folder/$1"
}
fake dpkg-query 'exit 1' # nothing is installed
fake sudo 'exec "$@"'
fake sleep 'exit 0'
# Its first $LOCKED calls find the lock taken; then it says and does what it is told.
fake apt-get "
echo \"\$@\" >>$folder/calls
if [ \$(wc -l <$folder/calls) -le \$LOCKED ]; then
  echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1 (apt)'
  exit 100
fi
echo \"\$SAYS\"
exit \$CODE"

# run LOCKED SAYS CODE: how scripts/setup ends, how often it says that it waits, how often it calls apt-get
run() {
  : >"$folder/calls"
  local code=0
  LOCKED=$1 SAYS=$2 CODE=$3 PATH="$folder:$PATH" "$setup" core >"$folder/said" 2>&1 || code=$?
  echo "$code $(grep -c 'waiting for another process' "$folder/said") $(wc -l <"$folder/calls")"
}
expect() {
  [ "$2" = "$3" ] || {
    echo "$1: got $2, expected $3"
    cat "$folder/said" "$folder/calls"
    exit 1
  }
}

expect 'no lock' "$(run 0 done 0)" '0 0 2'
expect 'a lock that is given back after three tries' "$(run 3 done 0)" '0 1 5'
expect 'another error' "$(run 0 'E: Unable to locate package' 100)" '1 0 2'
grep -q 'Unable to locate package' "$folder/said" || expect 'the reason' 'not shown' 'shown'
