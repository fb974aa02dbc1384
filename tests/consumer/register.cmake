# The installed package serves a project of its own. The sanitizers' runtime is not part of it.
if(NOT REDFUSER_SANITIZE)
  add_test(NAME consumer
           COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR}
                   -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/consumer
                   -DMODEL=${PROJECT_SOURCE_DIR}/models/bert.ts.eager/model.onnx
                   -DGENERATOR=${CMAKE_GENERATOR} -DCXX=${CMAKE_CXX_COMPILER}
                   -P ${CMAKE_CURRENT_LIST_DIR}/test.cmake)
  set_tests_properties(consumer PROPERTIES TIMEOUT 600 RESOURCE_LOCK build)
endif()
