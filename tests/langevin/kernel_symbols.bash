#!/usr/bin/env bash
# No kernel may leave a symbol that levels share: the linker would keep one copy, perhaps one that the machine cannot run.
# Usage: kernel_symbols.bash LEVEL OBJECTS [LEVEL OBJECTS ...], the objects of a level in one word, with blanks between
set -euo pipefail
status=0
while [ $# -gt 0 ]; do
  level=$1 objects=$2
  shift 2
  for object in $objects; do
    weak=$(nm --demangle --defined-only "$object" | grep -E ' [WVu] ' || true)
    [ -n "$weak" ] || { echo "$object: no templates at all: is this a kernel?"; status=1; }
    shared=$(grep -v "::$level::" <<<"$weak" || true)
    if [ -n "$shared" ]; then
      echo "$object: symbols outside of $level:"
      echo "$shared"
      status=1
    fi
  done
done
exit $status
