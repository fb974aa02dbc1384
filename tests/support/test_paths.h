#pragma once

namespace redfuser::test_paths {

// Functions, because the folders are known to one source file: the others compile alike in every
// clone.

/// The exported models, models/ of the source tree.
const char* models();
/// Damaged models that the fuzz targets found.
const char* found();
/// Generated kernels as they were reviewed, tests/codegen/golden of the source tree.
const char* golden();
/// Functors for the templates of src/device, tests/codegen/functors of the source tree.
const char* functors();
/// Where tests keep compiled kernels.
const char* cache();
/// The Python whose packages bring NVRTC; empty without one.
const char* python();

}  // namespace redfuser::test_paths
