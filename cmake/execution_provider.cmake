# The execution provider for ONNX Runtime: a shared library that ONNX Runtime loads, with the library in
# it. Distributions' static libraries of protobuf and RE2 are for programs alone (their thread-local
# variables are), so the shared ones take their place.
find_library(PROTOBUF_SHARED NAMES libprotobuf.so)
find_library(RE2_SHARED NAMES libre2.so)
if(PROTOBUF_SHARED AND RE2_SHARED)
  file(GLOB_RECURSE ep_sources CONFIGURE_DEPENDS src/ep/*.cpp)
  add_library(redfuser_ep MODULE ${ep_sources})
  target_include_directories(redfuser_ep PRIVATE src)
  target_include_directories(redfuser_ep SYSTEM PRIVATE third_party/onnxruntime)
  target_compile_definitions(redfuser_ep PRIVATE REDFUSER_VERSION="${PROJECT_VERSION}")
  target_link_libraries(redfuser_ep PRIVATE -Wl,--no-as-needed ${PROTOBUF_SHARED} ${RE2_SHARED}
                        -Wl,--as-needed redfuser redfuser_flags redfuser_fmt ONNX::onnx)
  # ONNX Runtime may hold other versions of the libraries inside: only the two entry points are seen.
  # It also unloads the library to load it again, but protobuf's stays and knows its messages.
  set(ep_symbols ${PROJECT_SOURCE_DIR}/src/ep/library/exported_symbols.map)
  target_link_options(redfuser_ep PRIVATE -Wl,--version-script=${ep_symbols} -Wl,-z,defs
                      -Wl,-z,nodelete $<$<NOT:$<BOOL:${REDFUSER_SANITIZE}>>:-s>)
  set_target_properties(redfuser_ep PROPERTIES REDFUSER_SHARED_RUNTIME ON
                        LINK_DEPENDS ${ep_symbols})
endif()
