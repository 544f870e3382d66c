#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header of the CPU templates compiles without a warning, alone for one configuration with vectors and one with matrix units, and together for
# others.
# With a second compiler, which warns of other things but misses the same declarations, they are one text for each configuration.
# Arguments: the source root, the C compiler, "together" for that.
set -eu
root=$1 cc=$2 together=${3-}
cd "$root/templates"
count=0

# check CONFIG FLAGS.. reads names of headers
check() {
    config=$1
    shift
    if [ "$together" ]; then
        sed 's/.*/#include "&"/' | compile "$@" || { echo "headers do not compile with $config $*" >&2; exit 1; }
    else
        while read -r header; do
            echo "#include \"$header\"" | compile "$@" || { echo "$header does not compile alone with $config $*" >&2; exit 1; }
        done
    fi
}

# compile FLAGS.. reads the text
compile() {
    $cc -std=gnu11 -I . "-DPLAN_HEADER=\"$config\"" -Wall -Wextra -Wno-unused-function -Werror -ffreestanding -fsyntax-only "$@" -x c -
}

golden=../tests/golden
all=$(find cpu -name '*.h' ! -name kernel_config_default.h | sort)
# These two say themselves what there is without a matrix unit.
vector=$(echo "$all" | grep -v '^cpu/matrix/'; echo cpu/matrix/diagonal.h; echo cpu/matrix/global_row.h)
count=$(echo "$all" | wc -l)
[ "$count" -gt 40 ] || { echo "only $count headers found" >&2; exit 1; }
echo "$vector" | check cpu/kernel_config_default.h -march=x86-64-v2 -DVECTOR_BYTES=16
echo "$all" | grep -v dots | check $golden/cpu-amx-bf16.kernel_config.h -march=x86-64-v4
together=yes # what a header lacks, it lacks in the configurations above
echo "$vector" | check $golden/cpu-v4-f32.kernel_config.h -march=x86-64-v4
echo "$all" | grep -v amx | check $golden/cpu-bf16.kernel_config.h -march=x86-64-v4
echo "$count headers"
