# Everything but the C library is linked statically, so that the programs run on a machine that has
# none of these packages.
set(Protobuf_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(NOT Protobuf_DIR)
  set(Protobuf_DIR ${CMAKE_CURRENT_LIST_DIR}/protobuf)
endif()
find_package(ONNX 1.22 REQUIRED)
find_package(Eigen3 3.4 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)

# RE2's packages differ in what they give CMake.
find_library(RE2_LIBRARY NAMES libre2.a re2 REQUIRED)
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
add_library(RE2::RE2 STATIC IMPORTED)
set_target_properties(RE2::RE2 PROPERTIES IMPORTED_LOCATION ${RE2_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${RE2_INCLUDE_DIR}
                      INTERFACE_LINK_LIBRARIES Threads::Threads)

# fmt's headers; src/base/format.cpp compiles what they declare.
add_library(redfuser_fmt INTERFACE)
target_include_directories(redfuser_fmt SYSTEM INTERFACE
                           $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
