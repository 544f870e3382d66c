#!/bin/sh
# Builds the examples against the libraries as they are installed, through pkg-config and through CMake,
# and runs them. Arguments: build folder, runtime/examples, the C compiler.
set -eu
build=$1 examples=$2 cc=$3
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
libdir=$(pkg-config --define-variable=prefix="$prefix" --variable=libdir maskc)
export LD_LIBRARY_PATH="$libdir" XDG_CACHE_HOME="$folder/cache"

# Only the header is there, and it stands alone in C11 and in C++.
[ "$(find "$folder" -name '*.h' | wc -l)" = 1 ] || fail "more than maskc.h was installed"
header=$(find "$folder" -name maskc.h)
$cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$header" || fail "not C11"
$cc -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$header" ||
    fail "not C++"

# Only maskc_ functions are visible, with their version.
for library in libmaskc libmaskc-runtime; do
    others=$(nm -D --defined-only "$libdir/$library.so" | awk '{ print $3 }' |
        grep -v '^maskc_[a-z_]*@@MASKC_0$\|^MASKC_0$' || true)
    [ -z "$others" ] || fail "$library.so also shows: $others"
done

build_example() { # NAME PACKAGE
    flags="$(pkg-config --define-variable=prefix="$prefix" --cflags --libs "$2")"
    # shellcheck disable=SC2086
    $cc -std=c11 -Wall -Wextra -Werror "$examples/$1.c" $flags -lm -o "$folder/$1" || fail "$1 does not build"
}

build_example compile_and_launch maskc
build_example training_step maskc
build_example bias maskc
build_example load_only maskc-runtime
! ldd "$folder/load_only" | grep -q 'libmaskc\.so' || fail "load_only needs libmaskc"

"$folder/compile_and_launch" 'longformer(64,2)' "$folder/example.mkb" > "$folder/out" || fail "compile_and_launch"
cat "$folder/out"
grep -q '^4 heads of 512 x 512 on ' "$folder/out" || fail "no first line"
grep -Eq '^row 100 of head 1: lse [0-9]+\.[0-9]+$' "$folder/out" || fail "no LSE"

"$folder/load_only" "$folder/example.mkb" > "$folder/out" || fail "load_only"
cat "$folder/out"
grep -Eq '4 heads of 512 x 512 on .*: [0-9.]+$' "$folder/out" || fail "nothing was launched"

# Each number is below the one before.
for name in training_step bias; do
    "$folder/$name" > "$folder/out" || fail "$name"
    cat "$folder/out"
    sed 's/.*: *//' "$folder/out" |
        awk '{ good = NF > 3; for (k = 2; k <= NF; k++) good = good && $k < $(k - 1) } END { exit !good }' ||
        fail "$name: nothing was learned"
done

command -v cmake > /dev/null || { echo "no cmake: its package was not tried"; exit 0; }
mkdir "$folder/cmake"
cat > "$folder/cmake/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.13)
project(example C)
find_package(maskc REQUIRED)
add_executable(load_only "$examples/load_only.c")
target_link_libraries(load_only maskc::runtime m)
add_executable(bias "$examples/bias.c")
target_link_libraries(bias maskc::maskc)
END
cmake -S "$folder/cmake" -B "$folder/cmake/build" -DCMAKE_C_COMPILER="$cc" \
    -Dmaskc_DIR="$libdir/cmake/maskc" > "$folder/log" 2>&1 &&
    cmake --build "$folder/cmake/build" >> "$folder/log" 2>&1 || { cat "$folder/log" >&2; fail "cmake"; }
"$folder/cmake/build/load_only" "$folder/example.mkb" > "$folder/out" || fail "load_only of cmake"
cat "$folder/out"
