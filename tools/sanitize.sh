#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer, and runs the C++ tests that match a
# pattern (all by default); or builds with ThreadSanitizer and runs what shares programs between
# threads.
#
#   tools/sanitize.sh [PATTERN]
#   tools/sanitize.sh thread
set -euo pipefail
. "$(dirname "$0")/env.sh"

kind=ON target=redfuser_tests sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-sanitize}
if [ "${1:-}" = thread ]; then
  kind=thread target=redfuser_thread_tests
  sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-thread}
  shift
fi
"$root/tools/setup.sh"
cmake -S "$root" -B "$sanitized" -G Ninja -DCMAKE_PREFIX_PATH="$onnx_prefix" \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" -DREDFUSER_SANITIZE=$kind \
  -DREDFUSER_TOOLS=OFF \
  $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --build "$sanitized" --target $target
# ONNX and Protocol Buffers are not instrumented: containers that cross over look overrun.
export ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
"$sanitized/tests/$target" --gtest_filter="${1:-*}" --gtest_brief=1
