# Tests that drive the programs from Python, against ONNX's own data and ONNX Runtime. They need
# REDFUSER_PYTHON, an interpreter with onnx, onnxruntime and numpy (tools/setup.sh makes one).
if(REDFUSER_PYTHON AND REDFUSER_TOOLS)
  add_test(NAME python.export
           COMMAND ${REDFUSER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python/export_test.py
                   $<TARGET_FILE:redfuser-opt> ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.convert
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/convert_test.py
                   $<TARGET_FILE:redfuser-opt> $<TARGET_FILE:redfuser-run>
                   ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.contrib_operators
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/contrib_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>)
  add_test(NAME python.counts
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/counts_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.body_types
           COMMAND ${REDFUSER_PYTHON} -B -W ignore
                   ${CMAKE_CURRENT_LIST_DIR}/python/body_types_test.py $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.ml_operators
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/ml_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.recurrent
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/recurrent_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.integers
           COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/integers_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>)
  add_test(NAME python.cascades
           COMMAND ${REDFUSER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python/cascades_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.onnx_conformance
           COMMAND ${REDFUSER_PYTHON} -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/conformance_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.onnx_conformance_reference
           COMMAND ${REDFUSER_PYTHON} -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/conformance_test.py
                   $<TARGET_FILE:redfuser-run> --device reference)
  add_test(NAME python.symbolic_sizes
           COMMAND ${REDFUSER_PYTHON} -W ignore -B ${CMAKE_CURRENT_LIST_DIR}/python/symbolic_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.sizes
           COMMAND ${REDFUSER_PYTHON} -W ignore -B ${CMAKE_CURRENT_LIST_DIR}/python/sizes_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.positions
           COMMAND ${REDFUSER_PYTHON} -W ignore -B
                   ${CMAKE_CURRENT_LIST_DIR}/python/positions_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.control_flow
           COMMAND ${REDFUSER_PYTHON} -W ignore -B
                   ${CMAKE_CURRENT_LIST_DIR}/python/control_flow_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.scalars
           COMMAND ${REDFUSER_PYTHON} -W ignore -B ${CMAKE_CURRENT_LIST_DIR}/python/scalars_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>)
  add_test(NAME python.expanded_fusion
           COMMAND ${REDFUSER_PYTHON} -W ignore
                   ${CMAKE_CURRENT_LIST_DIR}/python/expanded_fusion_test.py
                   $<TARGET_FILE:redfuser-opt>)
  add_test(NAME python.opsets
           COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/opset_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.optimized_models
           COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/optimized_test.py
                   $<TARGET_FILE:redfuser-run> ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.operator_table
           COMMAND ${REDFUSER_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/python/operator_table_test.py
                   $<TARGET_FILE:redfuser-opt> ${PROJECT_SOURCE_DIR}/docs/operators.md)
  add_test(NAME python.gpu_plans
           COMMAND ${REDFUSER_PYTHON} -B -W ignore
                   ${CMAKE_CURRENT_LIST_DIR}/python/gpu_plans_test.py $<TARGET_FILE:redfuser-run>
                   ${PROJECT_SOURCE_DIR}/docs/conformance.md)
  add_test(NAME python.docs
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/docs_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>
                   $<TARGET_FILE:redfuser-bench>)
  add_test(NAME python.models
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/models_test.py
                   $<TARGET_FILE:redfuser-run> ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.decoder_forms
           COMMAND ${REDFUSER_PYTHON} -B -W ignore
                   ${CMAKE_CURRENT_LIST_DIR}/python/decoder_forms_test.py
                   $<TARGET_FILE:redfuser-run> ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.rewrites
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/rewrites_test.py
                   $<TARGET_FILE:redfuser-run> ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.verify
           COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/verify_test.py
                   $<TARGET_FILE:redfuser-opt> $<TARGET_FILE:redfuser-run>
                   ${PROJECT_SOURCE_DIR}/models)
  add_test(NAME python.drawn
           COMMAND ${REDFUSER_PYTHON} -B -W ignore ${CMAKE_CURRENT_LIST_DIR}/python/drawn_test.py
                   $<TARGET_FILE:redfuser-run>)
  add_test(NAME python.random_graphs
           COMMAND ${REDFUSER_PYTHON} -B -W ignore
                   ${CMAKE_CURRENT_LIST_DIR}/python/random_graphs_test.py
                   $<TARGET_FILE:redfuser-run> 200)
  set_tests_properties(python.random_graphs PROPERTIES PROCESSORS 2)
  add_test(NAME python.shipped
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/shipped_test.py
                   $<TARGET_FILE:redfuser-run>)
  set_tests_properties(python.shipped PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME python.writing
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/writing_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>)
  add_test(NAME python.report
           COMMAND ${REDFUSER_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/python/report_test.py
                   $<TARGET_FILE:redfuser-run> $<TARGET_FILE:redfuser-opt>
                   ${PROJECT_SOURCE_DIR}/models)
  set_tests_properties(python.report PROPERTIES SKIP_RETURN_CODE 77)
  if(NOT REDFUSER_SANITIZE)
    # The wheel is that of package.wheel, which is built where that test does not run.
    add_test(NAME python.serve
             COMMAND ${PROJECT_SOURCE_DIR}/tools/serve.sh
                     ${CMAKE_CURRENT_LIST_DIR}/python/serve_test.py ${PROJECT_SOURCE_DIR}/models)
    set_tests_properties(python.serve PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 PROCESSORS 2
                         DEPENDS package.wheel RESOURCE_LOCK build ENVIRONMENT REDFUSER_BUILD=${PROJECT_BINARY_DIR})
  endif()
  set_tests_properties(python.rewrites PROPERTIES PROCESSORS 2)
  set_tests_properties(python.export python.contrib_operators python.ml_operators python.models
                       python.onnx_conformance python.onnx_conformance_reference python.convert python.rewrites python.opsets
                       python.optimized_models python.verify python.writing
                       python.counts python.body_types python.gpu_plans
                       PROPERTIES TIMEOUT 900)
else()
  message(STATUS "REDFUSER_PYTHON is not set: the Python tests are left out")
endif()
