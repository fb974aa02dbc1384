#!/usr/bin/env bash
# Runs a Python script in an environment with the wheel and what its extra "serve" needs, pinned:
#
#   tools/serve.sh SCRIPT [ARGUMENT...]
#
# The wheel is that of build/python/dist, built anew where the package's sources are newer. Exit code 77,
# with the reason, where the package index is out of reach.
set -euo pipefail
. "$(dirname "$0")/env.sh"
. "$(dirname "$0")/wheel_tools.sh"

serve_venv=$cache/serve-venv
serve_packages=("ray[data,serve]==2.60.0" "tritonclient[grpc,http]==2.73.0" "onnx==$onnx_version" numpy==2.4.6
                "${pins[@]: -1}")

# The wheel in a folder of its own, so that clones share the packages.
install_wheel() {
  local site=$build/python/serve wheel
  mkdir -p "$build/python"
  exec 8>"$build/python/serve-lock"
  flock 8
  wheel=$(ls "$build"/python/dist/*.whl 2>/dev/null) || true
  if [ -z "$wheel" ] || [ -n "$(find "$root/python" "$root/src" "$root/include" -newer "$wheel" -type f)" ]; then
    "$root/tools/wheel.sh" --no-tests >&2
    wheel=$(ls "$build"/python/dist/*.whl)
  fi
  if [ ! "$site" -nt "$wheel" ]; then
    rm -rf "$site"
    "$serve_venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps --target "$site" "$wheel"
    touch "$site"
  fi
  exec 8>&-
  export PYTHONPATH=$site PATH=$site/bin:$serve_venv/bin:$PATH
}

[ -x "$python" ] || { echo "run tools/setup.sh first" >&2; exit 1; }
prepare_environment "$serve_venv" "$cache/serve-lock" "${serve_packages[@]}"
install_wheel
exec "$serve_venv/bin/python" -B "$@"
