#!/usr/bin/env bash
# Sets up, builds, and runs a model of models/ (by name, else a LLaMA): its operators, what was
# fused, the comparison with PyTorch's result, and the time.
set -euo pipefail
. "$(dirname "$0")/env.sh"

"$root/tools/setup.sh"
"$root/tools/build.sh" --target redfuser-run --target redfuser-opt
model=$root/models/${1:-llama.dynamo.sdpa}
[ -f "$model/model.onnx" ] || { echo "no model in $model" >&2; exit 1; }
"$build/redfuser-run" "$model/model.onnx" --inputs "$model/inputs.npz" \
  --compare "$model/outputs.npz" --explain --iterations 20 --warmup 3
