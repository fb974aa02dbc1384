#!/usr/bin/env bash
# Builds the Python wheel, installs it into an empty virtual environment where no compiler is on the
# PATH, and runs its tests there (tests/package), or those that are named:
#
#   tools/wheel.sh [--no-tests | TEST_FILE...]
#
# The wheel lies in build/python/dist. Exit code 77, with the reason, where the package index is out of
# reach. tests/package/gpu_test.py takes the fake driver of the build's tests, where they are built.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$(dirname "$0")/wheel_tools.sh"

work=$build/python
test_packages=("onnx==$onnx_version" "onnxruntime==${onnxruntime_versions[-1]}" numpy==2.4.6 mypy==2.4.1 "${pins[@]: -1}")

# The library and the programs of the build, as the package finds them.
install_library() {
  build_targets redfuser_wheel_programs redfuser-run redfuser-opt
  cmake --install "$build" --prefix "$work/prefix" >/dev/null
}

build_wheel() {
  build_repaired_wheel "$root/python" "$work" --config-settings=build-dir="$work/extension" \
    --config-settings=cmake.define.CMAKE_PREFIX_PATH="$work/prefix" \
    --config-settings=cmake.define.REDFUSER_PROGRAMS="$work/programs"
  wheel=$(echo "$work"/dist/*.whl)
}

test_wheel() {
  local empty=$work/venv tests=("$@") dot test
  [ ${#tests[@]} -gt 0 ] || tests=("$root"/tests/package/*_test.py)
  rm -rf "$empty" "$work/path"
  /usr/bin/python3 -m venv "$empty"
  install "$empty/bin/pip" install "${test_packages[@]}"
  "$empty/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
  mkdir -p "$work/path"
  # The one program that the package may call.
  if dot=$(command -v dot); then ln -s "$dot" "$work/path/dot"; fi
  for test in "${tests[@]}"; do
    local libraries=()
    [ "$(basename "$test")" = gpu_test.py ] && libraries=("REDFUSER_CUDA_LIBRARIES=$build/tests/fake_cuda")
    echo "== $(basename "$test")"
    env -u VIRTUAL_ENV PATH="$empty/bin:$work/path" "${libraries[@]}" "$empty/bin/python" -B "$test" "$root/models"
  done
}

[ -x "$python" ] || { echo "run tools/setup.sh first" >&2; exit 1; }
hold_folder "$work"
prepare_build_tools
install_library
build_wheel
[ "${1-}" = --no-tests ] || test_wheel "$@"
