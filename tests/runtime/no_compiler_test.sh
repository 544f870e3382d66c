#!/bin/sh
# Without a compiler: what was compiled ahead serves all masks; what was cached is found; all else is one line and exit
# code 3; a damaged file of kernels is ignored and named.
# Arguments: the programs maskc and ahead.
set -eu
maskc=$1 ahead=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"

fail() {
    echo "no_compiler_test: $*" >&2
    exit 1
}

# alone ARGUMENT...: maskc with an empty PATH and a cache of its own.
alone() {
    env -u MASKC_CC PATH="$folder/bin" XDG_CACHE_HOME="$folder/cache" "$maskc" "$@"
}

# refused WHAT ARGUMENT...: one line with WHAT in it, exit code 3, nothing written.
refused() {
    what=$1 code=0
    shift
    alone "$@" -o "$folder/refused.mkb" > "$folder/log" 2>&1 || code=$?
    [ "$code" = 3 ] || fail "exit code $code, not 3: $*: $(cat "$folder/log")"
    [ "$(wc -l < "$folder/log")" = 1 ] || fail "not one line: $(cat "$folder/log")"
    grep -qF "$what" "$folder/log" || fail "'$what' is not in: $(cat "$folder/log")"
    [ ! -e "$folder/refused.mkb" ] || fail "a file was written: $*"
}

"$ahead" small "${XDG_CACHE_HOME:-$folder/made}/maskc" "$folder/kernels.ahead" 2> "$folder/log" || fail "$(cat "$folder/log")"

export MASKC_AHEAD=none
refused "install a compiler: apt install clang" compile star -n 64
export MASKC_AHEAD="$folder/kernels.ahead"
for mask in star logsparse strided fixed longformer bigbird blockbert-2 blockbert-3; do
    alone compile "$mask" -n 96 -o "$folder/$mask.mkb" > "$folder/log" 2>&1 || fail "$mask: $(cat "$folder/log")"
    alone verify "$folder/$mask.mkb" > "$folder/log" 2>&1 || fail "$mask: $(tail -n 3 "$folder/log")"
done
# A matrix unit's code that keeps more gathered columns than others.
for target in x86-64-bf16 x86-64-amx; do
    for mask in bigbird fairseq-fixed 'random(0.1, seed=3)' 'window(4) | columns(0, 40, 90, 200, 300)'; do
        alone compile "$mask" -n 384 --target "$target" --dtype bf16 -o "$folder/bf16.mkb" > "$folder/log" 2>&1 ||
            fail "$target: $mask: $(cat "$folder/log")"
    done
done
[ ! -e "$folder/cache" ] || fail "what is compiled ahead went to the cache as well"
alone devices | grep -q "^ahead .*kernels.ahead: 7 kernels by" || fail "devices: $(alone devices)"
alone run --help > /dev/null

refused "no such kernel was compiled ahead ($folder/kernels.ahead: 7 kernels" compile star -n 96 --head-dim 40
# Cut, of another kind, and with a changed byte behind the tables.
size=$(stat -c %s "$folder/kernels.ahead")
head -c $((size - 1)) "$folder/kernels.ahead" > "$folder/cut"
head -c $((size - 5000)) "$folder/kernels.ahead" > "$folder/changed"
printf x >> "$folder/changed"
tail -c 4999 "$folder/kernels.ahead" >> "$folder/changed"
MASKC_AHEAD=$folder/cut refused "$folder/cut: damaged or cut short: parts do not add up; it is ignored" compile star -n 96
MASKC_AHEAD=$maskc refused "not a file of kernels that this maskc compiled ahead; it is ignored" compile star -n 96
MASKC_AHEAD=$folder/absent refused "$folder/absent" compile star -n 96
MASKC_AHEAD=$folder/changed refused "the kernels compiled ahead are damaged" compile star -n 96 --target x86-64-amx --dtype bf16

# Kernels in the cache serve a machine without a compiler; a compiler named by the user is still called.
export MASKC_AHEAD=none
XDG_CACHE_HOME="$folder/cache" "$maskc" compile star -n 64 --head-dim 16 --forward-only -o "$folder/made.mkb" > "$folder/log" 2>&1 ||
    fail "with a compiler: $(cat "$folder/log")"
alone compile star -n 64 --head-dim 16 --forward-only -o "$folder/cached.mkb" > "$folder/log" 2>&1 ||
    fail "cached: $(cat "$folder/log")"
cmp "$folder/made.mkb" "$folder/cached.mkb" || fail "the cached kernel is another"
refused "install a compiler" compile star -n 64 --head-dim 24 --forward-only
code=0
MASKC_AHEAD=$folder/kernels.ahead MASKC_CC=/nonexistent/cc PATH=$folder/bin "$maskc" compile star -n 96 \
    -o "$folder/refused.mkb" > "$folder/log" 2>&1 || code=$?
[ "$code" = 3 ] && grep -q '^maskc: MASKC_CC: no C compiler runs' "$folder/log" || fail "MASKC_CC: $(cat "$folder/log")"
