# SPDX-License-Identifier: Apache-2.0
# Sourced by tools/quickstart and tools/test: installs what is missing on Debian 12 and Ubuntu 24.04
# (as root, or with sudo), and says which command would do it elsewhere.

build_packages="clang libomp-dev meson ninja-build pkg-config libjansson-dev libxxhash-dev libcairo2-dev libutf8proc-dev libdnnl-dev libmicrohttpd-dev zlib1g-dev libzstd-dev"
test_packages="gcc g++ libc6-dev libcmocka-dev valgrind clang-format llvm python3-matplotlib python3-pip python3-venv"

# from_caller PATH: the same place after `cd` to the checkout; the script sets caller=$PWD before that.
from_caller() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) if [ "${caller:?}" = "$PWD" ]; then printf '%s\n' "$1"; else printf '%s\n' "$caller/$1"; fi ;;
    esac
}

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 3; }

# missing_packages PACKAGE...: those that dpkg does not have installed.
missing_packages() {
    local p
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$p"
    done
}

run_as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root or sudo to run: $*"
    fi
}

# install_packages PACKAGE...: only what is missing; quiet when nothing is.
install_packages() {
    command -v dpkg-query >/dev/null || {
        say "not a Debian or Ubuntu system: the equivalents of these packages are expected: $*"
        return 0
    }
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    say "installing: $missing"
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! { run_as_root apt-get update -qq &&
        run_as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
        >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        rm -f "$log"
        die "apt-get could not install: $missing"
    fi
    rm -f "$log"
}

# The sanitizers' runtime is a package of its own, named after the compiler's version.
install_sanitizers() {
    local major
    major=$(clang -dumpversion | cut -d. -f1)
    [ -e "$(clang -print-file-name=libclang_rt.fuzzer-x86_64.a)" ] && return 0
    [ -n "$(find /usr/lib/llvm-"$major" -name 'libclang_rt.fuzzer*' 2>/dev/null | head -n 1)" ] && return 0
    install_packages "libclang-rt-$major-dev"
}

# build FOLDER OPTION...: configures once, then builds; the log is shown only when it fails.
build() {
    local folder=$1 log
    shift
    log=$(mktemp)
    if ! { { [ -e "$folder/build.ninja" ] || meson setup "$folder" "$@"; } && ninja -C "$folder"; } >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        rm -f "$log"
        die "the build in $folder failed"
    fi
    rm -f "$log"
}
