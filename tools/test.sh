#!/usr/bin/env bash
# Sets up, builds, checks the source tree, and runs every test. Fails if any of these does.
set -euo pipefail
. "$(dirname "$0")/env.sh"

"$root/tools/setup.sh"
"$root/tools/build.sh"
status=0
"$root/tools/check.sh" || status=1
ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" || status=1
exit $status
