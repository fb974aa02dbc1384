# libcuda, libnvrtc and libcublasLt that run kernels on the host, found like the real ones through
# REDFUSER_CUDA_LIBRARIES.
set(emulated_cuda_folder ${CMAKE_CURRENT_BINARY_DIR}/emulated_cuda)
set(fake_cuda_sources ${CMAKE_CURRENT_LIST_DIR}/../fake_cuda)

add_library(emulated_cuda SHARED ${fake_cuda_sources}/fake_driver.cpp
            ${fake_cuda_sources}/fake_streams.cpp
            ${fake_cuda_sources}/launch_rules.cpp ${CMAKE_CURRENT_LIST_DIR}/kernels.cpp
            ${CMAKE_CURRENT_LIST_DIR}/module.cpp ${CMAKE_CURRENT_LIST_DIR}/block.cpp
            ${CMAKE_CURRENT_LIST_DIR}/services.cpp)
add_library(emulated_nvrtc SHARED ${CMAKE_CURRENT_LIST_DIR}/emulated_nvrtc.cpp
            ${CMAKE_CURRENT_LIST_DIR}/host_source.cpp)
add_library(emulated_cublasLt SHARED ${CMAKE_CURRENT_LIST_DIR}/emulated_cublaslt.cpp
            ${CMAKE_CURRENT_LIST_DIR}/library_product.cpp)
foreach(library IN ITEMS cuda:1 nvrtc:13 cublasLt:13)
  string(REPLACE ":" ";" parts ${library})
  list(GET parts 0 name)
  list(GET parts 1 version)
  target_include_directories(emulated_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(emulated_${name} PRIVATE redfuser_flags)
  set_target_properties(emulated_${name} PROPERTIES OUTPUT_NAME ${name} SOVERSION ${version}
                        LIBRARY_OUTPUT_DIRECTORY ${emulated_cuda_folder})
endforeach()
target_link_libraries(emulated_cublasLt PRIVATE emulated_cuda)
set_target_properties(emulated_cublasLt PROPERTIES BUILD_RPATH "$ORIGIN")

# Kernels include the emulation's headers, which take longer to compile than a kernel.
set(emulated_flags -std=c++20 -O1 -w -fPIC -fno-strict-aliasing -ffp-contract=off -fno-gnu-unique
    -fvisibility=hidden)
set(emulated_header emulated_cuda/hopper_instructions.h)
set(emulated_include ${emulated_cuda_folder}/include)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  file(GLOB emulated_headers ${CMAKE_CURRENT_LIST_DIR}/*.h)
  file(MAKE_DIRECTORY ${emulated_include}/emulated_cuda)
  add_custom_command(OUTPUT ${emulated_include}/${emulated_header}.gch
    COMMAND ${CMAKE_CXX_COMPILER} ${emulated_flags} -I${PROJECT_SOURCE_DIR}/tests -x c++-header
            ${PROJECT_SOURCE_DIR}/tests/${emulated_header}
            -o ${emulated_include}/${emulated_header}.gch
    DEPENDS ${emulated_headers} VERBATIM)
  add_custom_target(emulated_precompiled DEPENDS ${emulated_include}/${emulated_header}.gch)
  add_dependencies(emulated_nvrtc emulated_precompiled)
endif()
list(JOIN emulated_flags " " emulated_flags)
target_compile_definitions(emulated_nvrtc PRIVATE
  REDFUSER_COMPILER="${CMAKE_CXX_COMPILER} ${emulated_flags} -I${emulated_include}"
  REDFUSER_TESTS="${PROJECT_SOURCE_DIR}/tests")

# Tests of tests/cuda on this GPU, some of every kernel family. All of them run so:
#   REDFUSER_CUDA_LIBRARIES=build/tests/emulated_cuda build/tests/redfuser_tests --gtest_filter=...
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/tests.txt emulated_tests REGEX "^[^#]")
foreach(test IN LISTS emulated_tests)
  string(REGEX REPLACE "^[A-Za-z]+/|[/.]?[*]" "" name ${test})
  add_test(NAME emulated_cuda.${name} COMMAND redfuser_tests --gtest_filter=${test})
  set_tests_properties(emulated_cuda.${name} PROPERTIES TIMEOUT 600 ENVIRONMENT
    "REDFUSER_CUDA_LIBRARIES=${emulated_cuda_folder};XDG_CACHE_HOME=${emulated_cuda_folder}")
endforeach()
add_dependencies(redfuser_tests emulated_cuda emulated_nvrtc emulated_cublasLt)
