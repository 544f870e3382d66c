#!/bin/sh
# Every header compiles alone; what others include (maskc.h, abi.h) also as strict C11 and C++11.
# Arguments: the source root, the C compiler.
set -eu
root=$1 cc=$2
cd "$root"

for header in runtime/maskc.h templates/abi.h; do
    $cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$header"
    $cc -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$header"
done

# runtime/emulated is text for the emulation, which is one file there; the examples need an installed maskc.h.
count=0
for header in $(find masks gen runtime tools -name '*.h' -not -path 'runtime/emulated/*' -not -path 'runtime/examples/*' | sort); do
    echo "#include \"$header\"" |
        $cc -std=gnu11 -D_GNU_SOURCE -I . -Wall -Wextra -Werror -fsyntax-only -x c - ||
        { echo "$header does not compile alone" >&2; exit 1; }
    count=$((count + 1))
done
[ "$count" -gt 20 ] || { echo "only $count headers found" >&2; exit 1; }
echo "$count headers"
