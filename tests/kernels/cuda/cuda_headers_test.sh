#!/bin/sh
# Each header and each entry file of the CUDA templates compiles alone, with the emulation's device header before it and
# the hand-written configuration of its family. Arguments: the source root, the C compiler, a folder to write to.
set -eu
root=$1 cc=$2 work=$3/cuda_headers
cd "$root"

# compile FILE CONFIG: CONFIG is a folder with a kernel_config.h.
compile()
{
    printf '#include "device.h"\n#include "%s"\n' "$1" |
        $cc -std=gnu11 -I runtime/emulated -I templates -I "$2" -Wall -Wextra -Werror -Wno-unused -Wno-sign-compare -Wno-enum-compare \
            -fsyntax-only -x c - || { echo "$1 does not compile alone" >&2; exit 1; }
    count=$((count + 1))
}

mkdir -p "$work/encoder_ops"
for config in templates/cuda/*/kernel_config_default.h; do
    family=$(basename "$(dirname "$config")")
    mkdir -p "$work/$family"
    cp "$config" "$work/$family/kernel_config.h"
done
cat >"$work/encoder_ops/kernel_config.h" <<end
#ifndef ROWS_H
#define ROWS_H
#include "abi.h"
enum { HIDDEN = 768, DTYPE = ABI_F32 };
#endif
end

count=0
for family in simt resident tiled hopper; do
    for file in templates/cuda/common/*.h "templates/cuda/$family"/*.h "templates/cuda/$family"/*.cu; do
        case $file in *kernel_config_default.h | */args.h) continue ;; esac
        compile "${file#templates/}" "$work/$family"
    done
done
for file in $(cd templates/encoder_ops && ls *.h *.cu); do
    [ "$file" = args.h ] || compile "encoder_ops/$file" "$work/encoder_ops"
done
for file in $(cd templates/train_ops && ls *.h *.cu); do
    [ "$file" = args.h ] || compile "train_ops/$file" "$work/encoder_ops"
done
[ "$count" -gt 50 ] || { echo "only $count files found" >&2; exit 1; }
echo "$count files"
