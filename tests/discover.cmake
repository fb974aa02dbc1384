# Every gtest case of `target` becomes a test, labelled with the folder of its source file.
include(GoogleTest)
function(redfuser_discover_tests target prefix timeout)
  gtest_discover_tests(${target} TEST_PREFIX "${prefix}" NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
                       PROPERTIES TIMEOUT ${timeout})
  set(listing ${CMAKE_CURRENT_BINARY_DIR}/${target}.json)
  set(labels ${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
                     COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DPREFIX=${prefix}
                             -DLISTING=${listing} -DLABELS=${labels}
                             -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/labels.cmake)
  # CTest also runs where the program is not built yet.
  if(NOT EXISTS ${labels})
    file(TOUCH ${labels})
  endif()
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
endfunction()
