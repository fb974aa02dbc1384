# The three programs in one file, for the Python wheel (tools/wheel.sh): the library is in it once. A
# wheel may ask for an older C library if the C++ runtime is the machine's.
include(${CMAKE_CURRENT_LIST_DIR}/fold_functions.cmake)
if(REDFUSER_TOOLS)
  add_executable(redfuser_wheel_programs EXCLUDE_FROM_ALL tools/wheel_programs.cpp)
  foreach(tool IN ITEMS run opt bench)
    add_library(redfuser_${tool}_main OBJECT EXCLUDE_FROM_ALL tools/${tool}_main.cpp)
    target_compile_definitions(redfuser_${tool}_main PRIVATE main=${tool}_main)
    target_link_libraries(redfuser_${tool}_main PRIVATE redfuser_workloads)
    target_sources(redfuser_wheel_programs PRIVATE
                   $<TARGET_OBJECTS:redfuser_${tool}_main>
                   $<FILTER:$<TARGET_OBJECTS:redfuser-${tool}>,EXCLUDE,${tool}_main>)
  endforeach()
  target_link_libraries(redfuser_wheel_programs PRIVATE redfuser_workloads)
  target_link_options(redfuser_wheel_programs PRIVATE -s)
  fold_functions(redfuser_wheel_programs)
  set_target_properties(redfuser_wheel_programs PROPERTIES REDFUSER_SHARED_RUNTIME ON
                        OUTPUT_NAME programs
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  add_dependencies(redfuser_wheel_programs redfuser_bundle)
endif()
