#!/usr/bin/env bash
# Builds the fuzz targets with Clang, AddressSanitizer and UndefinedBehaviorSanitizer, and runs one.
#
#   tools/fuzz.sh import|execute|algebra [libFuzzer options]
#   tools/fuzz.sh execute -runs=1000000
#   tools/fuzz.sh smoke        all targets, 40 seconds each
#   tools/fuzz.sh edges        the executor on ONNX's test models, each number in them at the edges
#                              of its type in turn: 122,000 models, ends at the first finding
#
# (ctest -R fuzz runs the same targets in the ordinary build, on a fixed number of mutations.)
#
# The corpus grows in $REDFUSER_FUZZ_CORPUS (build-fuzz/corpus) from ONNX's own test models and
# tests/fuzz/found. A finding is written to build-fuzz/found and ends the run.
set -euo pipefail
. "$(dirname "$0")/env.sh"

fuzz=${REDFUSER_FUZZ_BUILD:-$root/build-fuzz}
corpus=${REDFUSER_FUZZ_CORPUS:-$fuzz/corpus}
"$root/tools/setup.sh"
command -v clang++ >/dev/null || { echo "fuzzing needs clang and libclang-rt-dev" >&2; exit 1; }
cmake -S "$root" -B "$fuzz" -G Ninja -DCMAKE_PREFIX_PATH="$onnx_prefix" \
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS="-O2 -g1" -DREDFUSER_FUZZ=ON -DREDFUSER_SANITIZE=ON -DREDFUSER_TESTS=OFF \
  -DREDFUSER_TOOLS=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  $(command -v ccache >/dev/null && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --build "$fuzz" --target import_fuzz execute_fuzz algebra_fuzz

# ONNX and Protocol Buffers are not instrumented: containers that cross over look overrun.
# A short quarantine stays in the cache, and stacks of allocations are for whoever repeats a finding
# (ASAN_OPTIONS of the caller come last): together, twice as many executions.
ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=1:malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:${ASAN_OPTIONS:-}
export ASAN_OPTIONS
mkdir -p "$corpus/models" "$corpus/algebra" "$fuzz/found"
[ -n "$(ls -A "$corpus/models")" ] ||
  "$python" "$root/tests/fuzz/seed_models.py" "$corpus/models"

run() {
  local target=$1 folder=$corpus/models limit=1200
  shift
  [ "$target" = algebra ] && folder=$corpus/algebra && limit=96
  # The entropic schedule takes longer than the executions that it saves.
  "$fuzz/tests/fuzz/${target}_fuzz" -artifact_prefix="$fuzz/found/" -max_len=$limit -timeout=25 \
    -rss_limit_mb=2500 -entropic=0 -reload=0 -print_final_stats=1 "$@" "$folder" \
    "$root/tests/fuzz/found"
}

if [ "$1" = edges ]; then
  mkdir -p "$fuzz/edges"
  "$python" "$root/tests/fuzz/seed_models.py" "$fuzz/edges" --edges
  find "$fuzz/edges" -type f -print0 | sort -z |
    xargs -0 -n 400 "$fuzz/tests/fuzz/execute_fuzz" -timeout=25 -rss_limit_mb=2500 \
      -artifact_prefix="$fuzz/found/" 2> "$fuzz/edges.log" || { tail -40 "$fuzz/edges.log"; exit 1; }
elif [ "$1" = smoke ]; then
  for target in import execute algebra; do run "$target" -max_total_time=40; done
else
  run "$@"
fi
