# Sourced by the other scripts: where things are.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${REDFUSER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/redfuser}
build=${REDFUSER_BUILD:-$root/build}

onnx_version=1.22.0
onnxruntime_versions=(1.23.2 1.31.1)  # of tests: the oldest that the provider serves, and the newest
onnx_prefix=$cache/onnx-$onnx_version
venv=$cache/venv
python=$venv/bin/python
