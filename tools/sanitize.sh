#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer, and runs the C++ tests that match a
# pattern (all by default); or builds with ThreadSanitizer and runs the tests that use several
# threads, on the CPU and on the fake GPU, or lets threads run one session of ONNX Runtime at once for
# each of models, with all nodes in an execution provider, likewise; or links redfuser-run by link-time
# optimisation, which compares the types and functions that files define by one name.
#
#   tools/sanitize.sh [PATTERN]
#   tools/sanitize.sh thread [PATTERN]
#   tools/sanitize.sh provider
#   tools/sanitize.sh odr
set -euo pipefail
. "$(dirname "$0")/env.sh"

kind=ON targets=(redfuser_tests) sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-sanitize}
if [ "${1:-}" = thread ]; then
  kind=thread targets=(redfuser_thread_tests redfuser_device_tests)
  sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-thread}
  shift
elif [ "${1:-}" = provider ]; then
  kind=thread targets=(redfuser_provider_threads fake_cuda fake_nvrtc fake_cublasLt fake_nvidia-ml)
  sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-thread}
fi
"$root/tools/setup.sh"
if [ "${1:-}" = odr ]; then
  sanitized=${REDFUSER_SANITIZED_BUILD:-$root/build-odr}
  # Declarations are compared whatever the optimisation; none is the cheapest.
  cmake -S "$root" -B "$sanitized" -G Ninja -DCMAKE_PREFIX_PATH="$onnx_prefix" \
    -DCMAKE_BUILD_TYPE=None -DREDFUSER_TESTS=OFF -DCMAKE_AR="$(command -v gcc-ar)" \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
    -DCMAKE_CXX_FLAGS="-O0 -flto=auto -Werror=odr -Werror=lto-type-mismatch" \
    $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake --build "$sanitized" --target redfuser-run
  echo "no definition differs from another of its name"
  exit
fi
cmake -S "$root" -B "$sanitized" -G Ninja -DCMAKE_PREFIX_PATH="$onnx_prefix" \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS="-O1 -g1" -DREDFUSER_SANITIZE=$kind \
  -DREDFUSER_TOOLS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --build "$sanitized" --target "${targets[@]}"
# ONNX and Protocol Buffers are not instrumented: containers that cross over look overrun.
export ASAN_OPTIONS=detect_container_overflow=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
if [ "${1:-}" = provider ]; then
  onnxruntime=$(echo "$venv"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*)
  TSAN_OPTIONS+=:suppressions=$root/tests/provider/thread_suppressions.txt
  for name in RedFuserExecutionProvider RedFuserCudaExecutionProvider; do
    REDFUSER_CUDA_LIBRARIES=$sanitized/tests/fake_cuda "$sanitized/tests/redfuser_provider_threads" \
      "$onnxruntime" "$sanitized/libredfuser_ep.so" $name "$root"/models/*/model.onnx
  done
  exit
fi
for target in "${targets[@]}"; do
  "$sanitized/tests/$target" --gtest_filter="${1:-*}" --gtest_brief=1
done
