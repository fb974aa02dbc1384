#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer, and runs the C++ tests that match a
# pattern (all by default).
#
#   tools/sanitize.sh [PATTERN]
set -euo pipefail
. "$(dirname "$0")/env.sh"

sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-sanitize}
"$root/tools/setup.sh"
cmake -S "$root" -B "$sanitized" -G Ninja -DCMAKE_PREFIX_PATH="$onnx_prefix" \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" -DREDFUSER_SANITIZE=ON -DREDFUSER_TOOLS=OFF \
  $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --build "$sanitized" --target redfuser_tests
# ONNX and Protocol Buffers are not instrumented: containers that cross over look overrun.
export ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1
"$sanitized/tests/redfuser_tests" --gtest_filter="${1:-*}" --gtest_brief=1
