#!/bin/sh
# Builds the example against the library as it is installed, with pkg-config alone, and runs it.
# Arguments: build folder, this folder, the C compiler.
set -eu
build=$1 here=$2 cc=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "install_test: $*" >&2
    exit 1
}

command -v pkg-config > /dev/null || { echo "no pkg-config"; exit 77; }
DESTDIR="$folder" meson install -C "$build" --no-rebuild --quiet > "$folder/log" 2>&1 ||
    { cat "$folder/log" >&2; fail "meson install failed"; }

pc=$(find "$folder" -name maskc.pc)
[ -n "$pc" ] || fail "no maskc.pc was installed"
prefix="$folder$(sed -n 's/^prefix=//p' "$pc")"
export PKG_CONFIG_PATH="${pc%/*}"
flags="$(pkg-config --define-variable=prefix="$prefix" --cflags --libs maskc)"
libdir=$(pkg-config --define-variable=prefix="$prefix" --variable=libdir maskc)
export LD_LIBRARY_PATH="$libdir" XDG_CACHE_HOME="$folder/cache"

# Only the header is there, and it stands alone in C11 and in C++.
[ "$(find "$folder" -name '*.h' | wc -l)" = 1 ] || fail "more than maskc.h was installed"
header=$(find "$folder" -name maskc.h)
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$header" || fail "not C11"
$cc -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$header" ||
    fail "not C++"

# Only maskc_ functions are visible.
others=$(nm -D --defined-only "$libdir/libmaskc.so" | awk '{ print $3 }' | grep -v '^maskc_' || true)
[ -z "$others" ] || fail "libmaskc.so also shows: $others"

# shellcheck disable=SC2086
$cc -std=c11 -Wall -Wextra -Werror "$here/example.c" $flags -o "$folder/example"
"$folder/example" "$folder/example.mkb" > "$folder/out" || fail "the example failed"
cat "$folder/out"
grep -q '^4 heads of 512 x 512 on ' "$folder/out" || fail "no first line"
grep -Eq '^row 100 of head 1: lse [0-9]+\.[0-9]+$' "$folder/out" || fail "no LSE"
grep -Eq '^norms squared: dq [0-9.]+ dk [0-9.]+ dv [0-9.]+$' "$folder/out" || fail "no gradients"
awk '/^learning:/ { good = NF > 3; for (k = 3; k <= NF; k++) good = good && $k < $(k - 1) } END { exit !good }' \
    "$folder/out" || fail "nothing was learned"
