#!/usr/bin/env bash
# Builds the programs, build/redfuser-run and build/redfuser-opt, and the tests. Arguments go to
# CMake's configuration, such as -DREDFUSER_SANITIZE=ON; REDFUSER_BUILD names another folder.
set -euo pipefail
. "$(dirname "$0")/env.sh"

launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$onnx_prefix" -DREDFUSER_PYTHON="$python" "${launcher[@]}" "$@" >/dev/null
cmake --build "$build"
