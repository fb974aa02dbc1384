# `cmake --install` gives a package that needs nothing but the C++ compiler: the installed archive
# holds the library and the archives that it is built on.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(bundle ${PROJECT_BINARY_DIR}/bundle/libredfuser.a)
add_custom_command(
  OUTPUT ${bundle}
  COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${bundle}
          "-DARCHIVES=$<TARGET_FILE:redfuser>,$<TARGET_FILE:ONNX::onnx>,$<TARGET_FILE:ONNX::onnx_proto>,$<TARGET_FILE:protobuf::libprotobuf>,$<TARGET_FILE:RE2::RE2>,$<TARGET_FILE:ZLIB::ZLIB>"
          -P ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
  DEPENDS redfuser ${PROJECT_SOURCE_DIR}/cmake/bundle.cmake
  VERBATIM)
add_custom_target(redfuser_bundle ALL DEPENDS ${bundle})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redfuser)
configure_package_config_file(cmake/redfuserConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/redfuserConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/redfuserConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)

install(FILES ${bundle} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/redfuser DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/redfuserConfig.cmake
              ${PROJECT_BINARY_DIR}/redfuserConfigVersion.cmake DESTINATION ${package_dir})
if(REDFUSER_TOOLS)
  install(TARGETS redfuser-run redfuser-opt DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
