#!/usr/bin/env bash
# What Tab offers: completion_test.bash PROGRAM COMPLETIONS
set -u
program=$1
source "$2" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mkdir runs runs/one
touch mine.toml notes.txt

failures=0
# offers EXPECTED WORD...: the words after the program's name, the last one being completed.
offers() {
  local expected=$1 got
  shift
  COMP_WORDS=("$program" "$@")
  COMP_CWORD=$#
  COMPREPLY=(left over)
  _implicit_diffusion
  got="${COMPREPLY[*]-}"
  if [ "$got" != "$expected" ]; then
    echo "after '$*': offered '$got', expected '$expected'"
    failures=$((failures + 1))
  fi
}
# Every option that the help names is offered, and no other.
offers_all_options() {
  local known
  known=$("$program" "$@" --help | grep -o -E '^  (-h,)?--[a-z-]+' | grep -o -E -e '--[a-z-]+' | sort | tr '\n' ' ')
  COMP_WORDS=("$program" "$@" --)
  COMP_CWORD=$(($# + 1))
  _implicit_diffusion
  if [ "$(printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' ')" != "$known" ]; then
    echo "options of '$*': offered ${COMPREPLY[*]}; the help has $known"
    failures=$((failures + 1))
  fi
}

offers 'list run check report show-data show-model bench pretrain finetune sample evaluate verify-model --help --version' ''
offers 'show-data show-model sample' s
offers 'sde' sample --sampler s
offers 'mnist' pretrain mn
offers 'runs' show-model r
offers 'check' c
offers 'run report' r
offers '--version' --v
offers 'langevin-comparison langevin-reward' run lang
offers 'ebm-mixture ebm-network ebm-wells' run ebm
offers 'ebm-mixture ebm-network ebm-wells' run --quiet ebm
offers 'mine.toml' run mi
offers '' run no
offers 'runs/' run ru
offers 'baseline v3 v4' run langevin-reward --isa ''
offers 'v3 v4' run langevin-reward --isa v
offers '' run langevin-reward --seed ''
offers '--portable-bits --print-config' run langevin-reward --p
offers 'runs' run langevin-reward --output r
offers 'langevin-reward' check langevin-r
offers 'mine.toml' check mi
offers 'v3 v4' check --isa v
offers '--seed --set' check --s
offers 'runs/one' report runs/
offers '--output' report --o
offers 'v3 v4' bench --isa v
offers 'runs' show-data ru
offers '--count' show-data runs --c
offers 'notes.txt' show-data runs --output no
offers 'notes.txt' report runs --output no
offers_all_options
offers_all_options list
offers_all_options run
offers_all_options check
offers_all_options report
offers_all_options show-data
offers_all_options show-model
offers_all_options bench
if [ -x "$(dirname "$program")/implicit-diffusion-networks" ]; then
  for command in pretrain finetune sample evaluate verify-model; do offers_all_options "$command"; done
fi

# Names with nothing else that begins like them.
mapfile -t names < <("$program" list | cut -d ' ' -f 1)
[ "${#names[@]}" -ge 3 ] || { echo "only ${#names[@]} experiments are listed"; failures=$((failures + 1)); }
for name in "${names[@]}"; do offers "$name" run "$name"; done

complete -p implicit-diffusion >/dev/null || failures=$((failures + 1))
exit $((failures > 0))
