#!/usr/bin/env bash
# check.sh MODEL EXPECT [-DNAME ...]: explores every state of MODEL.pml under these definitions.
#
# EXPECT: holds   no assertion fails (or, with -DLIVE, no cycle that never ends)
#         breaks  one does; its counterexample is then printed when TRAIL=1
# Exit 0 when it is so. Works in a temporary folder.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
model=$1 expect=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$folder/$model.pml" "$work/model.pml"
cd "$work"

# The compiler takes longer than most searches.
compile=(-O0 -w -DSAFETY) run=(-m400000 -c1)
for definition in "$@"; do
  case $definition in
    -DLIVE) compile=(-O0 -w -DNFAIR=6) run=(-a -f -m400000) ;; # acceptance cycles under weak fairness
    -DW=3) compile[0]=-O1 ;;
  esac
done

spin -a "$@" model.pml >generate.log 2>&1 || { cat generate.log; exit 2; }
gcc "${compile[@]}" -o pan pan.c 2>compile.log || { cat compile.log; exit 2; }
./pan "${run[@]}" >pan.log 2>&1 || true

states=$(awk '/states, stored/ { print $1; exit }' pan.log)
broken=$(grep -oE 'assertion violated.*|acceptance cycle.*' pan.log | head -1 || true)
errors=$(grep -oE 'errors: [0-9]+' pan.log | tail -1 || true)
printf '%s %s: %s, %s states%s\n' "$model" "$*" "${errors:-no verdict}" "${states:-0}" "${broken:+, $broken}"

# A search that stopped short of the end proves nothing.
if grep -qE 'max search depth too small|out of memory|Search not completed.*error' pan.log; then
  grep -E 'depth|memory|Search' pan.log
  [ "$expect" = breaks ] && [ -n "$broken" ] || exit 1
fi
if [ -n "$broken" ] && [ "${TRAIL:-0}" = 1 ]; then spin -t -p -g "$@" model.pml; fi
case $expect in
  holds) [ "$errors" = 'errors: 0' ] ;;
  breaks) [ -n "$broken" ] ;;
  *) echo "check.sh: '$expect' is neither holds nor breaks"; exit 2 ;;
esac
