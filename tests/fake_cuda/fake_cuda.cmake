# Tests of GPU sessions with fake libcuda, libnvrtc and libcublasLt, which record calls. They are a
# program of their own, since a process opens one driver.
set(fake_cuda_folder ${CMAKE_CURRENT_BINARY_DIR}/fake_cuda)
foreach(library IN ITEMS driver:cuda:1 nvrtc:nvrtc:13 cublaslt:cublasLt:13 nvml:nvidia-ml:1)
  string(REPLACE ":" ";" parts ${library})
  list(GET parts 0 source)
  list(GET parts 1 name)
  list(GET parts 2 version)
  add_library(fake_${name} SHARED ${CMAKE_CURRENT_LIST_DIR}/fake_${source}.cpp)
  target_include_directories(fake_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fake_${name} PRIVATE redfuser_flags)
  set_target_properties(fake_${name} PROPERTIES OUTPUT_NAME ${name} SOVERSION ${version}
                        LIBRARY_OUTPUT_DIRECTORY ${fake_cuda_folder})
endforeach()

add_library(fake_nvtx SHARED ${CMAKE_CURRENT_LIST_DIR}/fake_nvtx.cpp)
target_link_libraries(fake_nvtx PRIVATE redfuser_flags)
set_target_properties(fake_nvtx PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${fake_cuda_folder})

target_sources(fake_cuda PRIVATE ${CMAKE_CURRENT_LIST_DIR}/launch_rules.cpp
                                 ${CMAKE_CURRENT_LIST_DIR}/fake_streams.cpp
                                 ${CMAKE_CURRENT_LIST_DIR}/no_kernels.cpp)

file(GLOB device_test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cpp)
if(NOT TARGET redfuser_workloads)
  list(REMOVE_ITEM device_test_sources ${CMAKE_CURRENT_LIST_DIR}/sweep_test.cpp)
endif()
add_executable(redfuser_device_tests ${device_test_sources} ${CMAKE_CURRENT_LIST_DIR}/main.cpp
               ${CMAKE_CURRENT_LIST_DIR}/launch_rules.cpp
               ${CMAKE_CURRENT_LIST_DIR}/../support/test_paths.cpp)
foreach(library IN ITEMS fake_cublasLt fake_nvidia-ml)
  target_link_libraries(${library} PRIVATE fake_cuda)
  set_target_properties(${library} PROPERTIES BUILD_RPATH "$ORIGIN")
endforeach()
add_dependencies(redfuser_device_tests fake_cuda fake_nvrtc fake_cublasLt fake_nvidia-ml fake_nvtx)
target_include_directories(redfuser_device_tests PRIVATE ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(redfuser_device_tests PRIVATE
                           REDFUSER_FAKE_CUDA="${fake_cuda_folder}")
target_link_libraries(redfuser_device_tests PRIVATE redfuser redfuser_flags redfuser_fmt
                      nlohmann_json::nlohmann_json GTest::gtest)
if(TARGET redfuser_workloads)
  target_link_libraries(redfuser_device_tests PRIVATE redfuser_workloads)
endif()
if(REDFUSER_TOOLS)
  add_dependencies(redfuser_device_tests redfuser-run)
endif()
redfuser_discover_tests(redfuser_device_tests device. 300)
