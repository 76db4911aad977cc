#!/usr/bin/env bash
# The last column of the tables of docs/results.md: what scripts/results makes of our seeds and of a reference.
# Usage: results_test.bash scripts/results
set -euo pipefail
eval "$(sed -n '/^table() {/,/^}/p; /^row() {/,/^}/p' "$1")"

failures=0
# expect VERDICT REFERENCE SEEDS: for ten numbers with mean 0 and standard deviation 1 (squares sum to 9), whose mean has a standard error of 0.316.
expect() {
  local line
  table heading "$3" >/dev/null
  line=$(printf '%s\n' -0.9486833 0.9486833 -0.9486833 0.9486833 -0.9486833 0.9486833 -0.9486833 0.9486833 -0.9486833 0.9486833 |
    row label 2 "$2")
  [[ $line == *"| $1 |" ]] && return
  echo "reference $2 of $3 seeds: not $1 but $line"
  failures=$((failures + 1))
}
expect inside "0.00" 1
expect agrees "3.00" 1 # one seed of theirs has a standard deviation of 1 itself: 3 sqrt(1.1) = 3.15
expect DIFFERS "3.20" 1
expect agrees "1.30" 10 # 3 sqrt(0.2) = 1.34
expect DIFFERS "1.40" 10
expect DIFFERS "2.00" 10
expect agrees "0.90 [-1, 3]" 1800 # the mean counts, not its range: 3 sqrt(0.1 + 1/1800) = 0.951
expect DIFFERS "1.00 [-1, 3]" 1800
expect inside "-0.10 to 0.10" 5
expect agrees "0.90 to 2.00" 5 # the nearer end: 3 sqrt(0.1) = 0.949
expect DIFFERS "1.00 to 2.00" 5
expect DIFFERS never 1
[ $failures = 0 ]
