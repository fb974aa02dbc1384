#include "support/test_paths.h"

namespace redfuser::test_paths {

const char* models() { return REDFUSER_MODELS_DIR; }
const char* found() { return REDFUSER_FOUND_DIR; }
const char* golden() { return REDFUSER_GOLDEN_DIR; }
const char* functors() { return REDFUSER_FUNCTORS_DIR; }
const char* cache() { return REDFUSER_TESTS_CACHE; }
const char* python() { return REDFUSER_TESTS_PYTHON; }

}  // namespace redfuser::test_paths
