#!/usr/bin/env bash
# Sets up what RedFuser is built with, on Debian 12, Ubuntu 24.04 or newer: system packages, a
# Python environment for the tests, and ONNX as a static library. What is built stays in
# $REDFUSER_CACHE (~/.cache/redfuser), so another clone starts at once; a second run changes nothing.
set -euo pipefail
. "$(dirname "$0")/env.sh"

onnx_sha256=ef40c0aaf0b643857ea9306fc7eddce17eaf9fb0407e4801f1fc5758443a38e0
packages=(g++ cmake ninja-build make ccache clang-format git graphviz python3 python3-dev python3-venv
          protobuf-compiler libprotobuf-dev libeigen3-dev libgtest-dev libcli11-dev
          nlohmann-json3-dev libfmt-dev libre2-dev zlib1g-dev)
# A newer CMake than Debian 12 has, for ONNX's build only; the others are for the tests. NVRTC
# compiles the generated kernels where there is no GPU.
python_packages=(cmake==3.31.6 "onnx==$onnx_version" numpy==2.4.6 "onnxruntime==${onnxruntime_versions[-1]}"
                 nvidia-cuda-nvrtc==13.0.88)

install_packages() {
  local missing=() package sudo=()
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = "ii " ] ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "missing packages: ${missing[*]} (run as root)" >&2; exit 1; }
    sudo=(sudo)
  fi
  echo "== installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_python_packages() {
  local stamp=$venv/redfuser.stamp wanted="${python_packages[*]}"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  echo "== installing Python packages for the tests"
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${python_packages[@]}"
  echo "$wanted" >"$stamp"
}

build_onnx() {
  local stamp=$onnx_prefix/redfuser.stamp work=$cache/onnx-build
  local wanted="$onnx_sha256 $(protoc --version) $(g++ -dumpversion)"
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  echo "== building ONNX $onnx_version (once, about a minute)"
  rm -rf "$work" "$onnx_prefix"
  mkdir -p "$work"
  "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary onnx \
    --dest "$work" "onnx==$onnx_version"
  echo "$onnx_sha256  $work/onnx-$onnx_version.tar.gz" | sha256sum --check --quiet
  tar -xzf "$work/onnx-$onnx_version.tar.gz" -C "$work"
  "$venv/bin/cmake" -S "$work/onnx-$onnx_version" -B "$work/build" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DONNX_ML=ON \
    -DONNX_BUILD_PYTHON=OFF -DONNX_USE_UNITY_BUILD=ON -DONNX_USE_PROTOBUF_SHARED_LIBS=OFF \
    -DProtobuf_USE_STATIC_LIBS=ON -DPython3_EXECUTABLE="$python" \
    -DCMAKE_INSTALL_PREFIX="$onnx_prefix" >"$work/log"
  "$venv/bin/cmake" --build "$work/build" --target install >>"$work/log" ||
    { tail -n 30 "$work/log" >&2; exit 1; }
  rm -rf "$work"
  echo "$wanted" >"$stamp"
}

install_packages
mkdir -p "$cache"
# Another clone may be setting up the same cache.
exec 9>"$cache/lock"
flock 9
install_python_packages
build_onnx
echo "== ready: $cache"
