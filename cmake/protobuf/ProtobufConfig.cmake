# ONNX's package asks for protobuf's own CMake package, which Debian and Ubuntu leave out; CMake's
# find module gives the same targets.
find_package(Protobuf MODULE REQUIRED)
