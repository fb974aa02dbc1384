# Builds the wheel, installs it into an empty environment, and runs the tests of this folder there.
# The sanitizers' runtime is not part of it.
if(REDFUSER_TOOLS AND NOT REDFUSER_SANITIZE)
  file(GLOB package_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.py)
  add_test(NAME package.wheel COMMAND ${PROJECT_SOURCE_DIR}/tools/wheel.sh ${package_tests})
  set_tests_properties(package.wheel PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 PROCESSORS 2
                       RESOURCE_LOCK build
                       ENVIRONMENT REDFUSER_BUILD=${PROJECT_BINARY_DIR})
endif()
