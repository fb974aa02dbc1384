#!/usr/bin/env bash
# Sets up, builds, checks the source tree, and runs every test. Fails if any of these does, if a test
# of the tree is not in the build, or if other tests are skipped than tests/skipped_tests.txt records.
set -euo pipefail
. "$(dirname "$0")/env.sh"

"$root/tools/setup.sh"
"$root/tools/build.sh"
status=0
"$root/tools/check.sh" || status=1
ctest --test-dir "$build" --output-on-failure --parallel "$(nproc)" \
  --output-junit "$build/test_results.xml" || status=1
"$python" "$root/tools/check_tests.py" "$build" "$build/test_results.xml" || status=1
exit $status
