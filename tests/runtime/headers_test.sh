#!/bin/sh
# Every header compiles alone; what others include (maskc.h, abi.h) also as strict C11 and C++11.
# A C file of the build that includes a header before anything else has compiled that header alone, with all its warnings; only the
# other headers are compiled here. Arguments: the source root, the C compiler, the build's compile_commands.json.
set -eu
root=$1 cc=$2 commands=$3
cd "$root"
cairo=$(pkg-config --cflags cairo 2>/dev/null) || cairo=

for header in runtime/maskc.h templates/abi.h; do
    $cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$header"
    $cc -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$header"
done

# Whether the header needs an optional library that is not installed.
needs_absent() {
    for library in microhttpd.h oneapi/dnnl/dnnl.h cairo.h; do
        if grep -q "#include <$library>" "$1" && ! echo "#include <$library>" | $cc $cairo -E -x c - >/dev/null 2>&1; then
            return 0
        fi
    done
    return 1
}

# Headers that a C file of the build includes before anything else. Where that list has other paths, it is empty.
proven=$(grep -o '"file": "[^"]*\.c"' "$commands" | sed 's,"$,,; s,.*",,; s,^\(\.\./\)*,,' | sort -u |
    while read -r file; do [ ! -e "$file" ] || echo "$file"; done |
    xargs awk 'FNR == 1 { over = 0 }
        !over && /^[ \t]*#/ { over = 1; if ($1 == "#include" && $2 ~ /^"/) print substr($2, 2, length($2) - 2) }' /dev/null | sort -u)

# Left out: text for the emulation, which is one file there (runtime/emulated); the examples, which need an installed maskc.h; a generated table whose row is
# defined by the one file that includes it (hf_classes.h); what is read after a test's own macros (fake_cuda*.h).
count=0 here=0
for header in $(find masks gen runtime tools model tests/support -name '*.h' -not -path 'runtime/emulated/*' -not -path 'runtime/examples/*' \
    -not -name hf_classes.h -not -path 'tests/support/tiles/*' -not -name 'fake_cuda*.h' | sort); do
    count=$((count + 1))
    echo "$proven" | grep -qxF "$header" && continue
    needs_absent "$header" && continue
    echo "#include \"$header\"" |
        $cc -std=gnu11 -D_GNU_SOURCE -fopenmp-simd -I . $cairo -Wall -Wextra -Werror -fsyntax-only -x c - ||
        { echo "$header does not compile alone" >&2; exit 1; }
    here=$((here + 1))
done
for folder in masks gen runtime tools model; do
    [ -n "$(find "$folder" -name '*.h')" ] || { echo "no header in $folder" >&2; exit 1; }
done
echo "$count headers, $here of them compiled here"
