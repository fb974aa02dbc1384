#!/usr/bin/env bash
# The rules of the source tree that a script can see: format, include order, file sizes, names.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$root"

failed=0
check_format() {
  # Versions differ in what they make of the same style; 14 (Debian 12's) decides.
  case $(clang-format --version) in
    *"version 14."*) ;;
    *) echo "format not checked: that takes clang-format 14"; return ;;
  esac
  find include src tools tests examples python -name '*.h' -o -name '*.cpp' -o -name '*.cuh' 2>/dev/null |
    sort | xargs clang-format --dry-run -Werror
}
check_format || failed=1
python3 tools/check_layers.py || failed=1
python3 tools/check_sizes.py || failed=1
python3 tools/check_names.py || failed=1
python3 tools/check_headers.py || failed=1
python3 tools/check_includes.py || failed=1
[ $failed -eq 0 ] && echo "checks passed"
exit $failed
