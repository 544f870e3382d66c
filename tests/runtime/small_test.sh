#!/bin/sh
# libmaskc-runtime: a program linked to it alone runs the kernel file of every mask of the gallery as one
# linked to libmaskc does; it is small and needs libc and one OpenMP.
# Arguments: the program maskc, the gallery's folder, the two programs, libmaskc-runtime.so.
set -eu
maskc=$1 gallery=$2 with_all=$3 with_small=$4 library=$5
most=300000 # bytes, stripped
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "small_test: $*" >&2
    exit 1
}

for file in "$gallery"/*.mask; do
    name=$(basename "$file" .mask)
    "$maskc" compile "$name" -n 96 --target cpu -o "$folder/$name.mkb" > "$folder/log" 2>&1 ||
        { cat "$folder/log" >&2; fail "cannot compile $name"; }
done
"$with_all" cpu "$folder"/*.mkb > "$folder/all"
"$with_small" cpu "$folder"/*.mkb > "$folder/small"
cmp "$folder/all" "$folder/small" || fail "the two libraries give different results"
[ "$(wc -l < "$folder/small")" -ge 12 ] || fail "too few masks in the gallery"
! "$with_small" emulated "$folder/star.mkb" 2> "$folder/log" || fail "the small library emulates"
grep -q 'emulated is a device of libmaskc' "$folder/log" || fail "$(cat "$folder/log")"
! ldd "$with_small" | grep -q 'libmaskc\.so' || fail "the program is linked to libmaskc too"

strip -o "$folder/stripped.so" "$library"
size=$(stat -c %s "$folder/stripped.so")
echo "stripped: $size bytes"
[ "$size" -le "$most" ] || fail "$size bytes stripped, more than $most"

# Nothing in it plans, emits, compiles, emulates or writes JSON.
others=$(nm "$library" | awk '{ print $3 }' |
    grep -E '^(plan_(build|check|print)|build_plan|emit_|source_|compile_|kernel_compile|nvrtc|host_compile|emulat|json|cairo|artifact_write)' || true)
[ -z "$others" ] || fail "it holds: $others"

needed=$(ldd "$library" | awk '{ print $1 }' | sed 's|.*/||')
echo "needs: $(echo $needed)"
openmp=0
for name in $needed; do
    case $name in
        linux-vdso.so.*|ld-linux-x86-64.so.*|libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*) ;;
        libgomp.so.*|libomp.so*|libiomp5.so) openmp=$((openmp + 1)) ;;
        *) fail "needs $name" ;;
    esac
done
[ "$openmp" = 1 ] || fail "needs $openmp OpenMP libraries"
