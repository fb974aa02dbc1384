# The execution provider in ONNX Runtime: the build's library in that of the tests, and the wheel in
# environments with the oldest and the newest version. The sanitizers' runtime is not part of it.
if(TARGET redfuser_ep AND NOT REDFUSER_SANITIZE)
  if(REDFUSER_PYTHON)
    add_test(NAME provider.operators
             COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/operators_test.py
                     $<TARGET_FILE:redfuser_ep> ${PROJECT_SOURCE_DIR}/models)
    foreach(name IN ITEMS gpu gpu_memory)
      add_test(NAME provider.${name}
               COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/${name}_test.py
                       $<TARGET_FILE:redfuser_ep>)
      set_tests_properties(provider.${name} PROPERTIES ENVIRONMENT
                           REDFUSER_CUDA_LIBRARIES=${CMAKE_CURRENT_BINARY_DIR}/fake_cuda)
    endforeach()
    add_test(NAME provider.gpu_results
             COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/gpu_results_test.py
                     $<TARGET_FILE:redfuser_ep> ${PROJECT_SOURCE_DIR}/models)
    set_tests_properties(provider.gpu_results PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  add_test(NAME provider.wheel
           COMMAND ${PROJECT_SOURCE_DIR}/tools/provider_wheel.sh
                   ${CMAKE_CURRENT_LIST_DIR}/installation_test.py
                   ${CMAKE_CURRENT_LIST_DIR}/models_test.py
                   ${CMAKE_CURRENT_LIST_DIR}/operators_test.py
                   ${CMAKE_CURRENT_LIST_DIR}/session_test.py)
  set_tests_properties(provider.wheel PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 PROCESSORS 2
                       RESOURCE_LOCK build
                       ENVIRONMENT
                       "REDFUSER_BUILD=${PROJECT_BINARY_DIR};REDFUSER_FAKE_CUDA=${CMAKE_CURRENT_BINARY_DIR}/fake_cuda")
endif()
