# src/device/*.cuh, embedded in the library as text (codegen/core/device_text.h).
file(GLOB device_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.cuh)
set(device_source ${PROJECT_BINARY_DIR}/device_headers.cpp)
string(REPLACE ";" "," device_list "${device_headers}")
add_custom_command(OUTPUT ${device_source}
                   COMMAND ${CMAKE_COMMAND} -DOUT=${device_source} -DHEADERS=${device_list}
                           -P ${PROJECT_SOURCE_DIR}/cmake/embed_device.cmake
                   DEPENDS ${device_headers} ${PROJECT_SOURCE_DIR}/cmake/embed_device.cmake
                   VERBATIM)
target_sources(redfuser_codegen PRIVATE ${device_source})
