#!/usr/bin/env bash
# Builds the programs and the tests, or the targets that --target names, each as often as wanted:
#
#   tools/build.sh --target redfuser-run --target redfuser-opt
#
# The programs are build/redfuser-run and build/redfuser-opt. Other arguments go to CMake's
# configuration, such as -DREDFUSER_SANITIZE=ON; REDFUSER_BUILD names another folder.
set -euo pipefail
. "$(dirname "$0")/env.sh"

targets=() options=()
while [ $# -gt 0 ]; do
  case $1 in
    --target) targets+=(--target "${2:?--target needs a name}"); shift ;;
    -*) options+=("$1") ;;
    *) echo "error: \"$1\" is no option; a target needs --target before it" >&2; exit 2 ;;
  esac
  shift
done
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  # Without these ccache stores nothing that uses a precompiled header.
  CCACHE_SLOPPINESS="$(ccache --get-config sloppiness),pch_defines,time_macros"
  export CCACHE_SLOPPINESS
fi
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$onnx_prefix" -DREDFUSER_PYTHON="$python" \
  -DREDFUSER_TESTS_CACHE="$cache/test_kernels" "${launcher[@]}" "${options[@]}" \
  >/dev/null
cmake --build "$build" "${targets[@]}"
