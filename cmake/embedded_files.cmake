# Files that the library holds as text.
function(redfuser_embed target source root include namespace type function)
  string(REPLACE ";" "," files "${ARGN}")
  add_custom_command(OUTPUT ${source}
                     COMMAND ${CMAKE_COMMAND} -DOUT=${source} -DFILES=${files} -DROOT=${root}
                             -DINCLUDE=${include} -DNAMESPACE=${namespace} -DTYPE=${type}
                             -DFUNCTION=${function}
                             -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
                     DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
                     VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()

file(GLOB_RECURSE device_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/device/*.cuh)
redfuser_embed(redfuser_codegen ${PROJECT_BINARY_DIR}/device_headers.cpp ${PROJECT_SOURCE_DIR}/src
               codegen/core/device_text.h redfuser::codegen DeviceHeader device_headers
               ${device_headers})

set(viewer ${PROJECT_SOURCE_DIR}/src/runtime/report)
file(GLOB viewer_files CONFIGURE_DEPENDS ${viewer}/*.html ${viewer}/*.css ${viewer}/*.js)
redfuser_embed(redfuser_runtime ${PROJECT_BINARY_DIR}/viewer_files.cpp ${viewer}
               runtime/report/viewer.h redfuser::runtime ViewerFile viewer_files ${viewer_files})
