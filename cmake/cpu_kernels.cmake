# The vector kernels of src/cpu/simd, compiled once per instruction set into namespaces of their
# own; src/cpu/machine/kernel_dispatch.cpp picks one when the program runs.
function(redfuser_cpu_kernels isa)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/simd/*.cpp
       ${PROJECT_SOURCE_DIR}/src/cpu/simd/integers/*.cpp
       ${PROJECT_SOURCE_DIR}/src/cpu/simd/moves/*.cpp
       ${PROJECT_SOURCE_DIR}/src/cpu/simd/pointwise/*.cpp
       ${PROJECT_SOURCE_DIR}/src/cpu/simd/windows/*.cpp)
  add_library(redfuser_cpu_${isa} OBJECT ${sources})
  target_include_directories(redfuser_cpu_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(redfuser_cpu_${isa} PRIVATE RF_ISA=${isa} RF_ISA_NAME="${isa}")
  target_compile_options(redfuser_cpu_${isa} PRIVATE -Wall -Wextra -O3 -fno-math-errno
                         -fno-trapping-math -ffp-contract=fast ${ARGN})
  if(REDFUSER_SANITIZE STREQUAL "thread")
    target_compile_options(redfuser_cpu_${isa} PRIVATE -fsanitize=thread)
  elseif(REDFUSER_SANITIZE)
    target_compile_options(redfuser_cpu_${isa} PRIVATE -fsanitize=address)
  endif()
  target_sources(redfuser PRIVATE $<TARGET_OBJECTS:redfuser_cpu_${isa}>)
endfunction()

set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cpu/simd/pointwise/chain.cpp
                            ${PROJECT_SOURCE_DIR}/src/cpu/simd/integers/integer_scale.cpp PROPERTIES COMPILE_OPTIONS
                            -ffp-contract=off)
redfuser_cpu_kernels(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  redfuser_cpu_kernels(avx2 -march=x86-64-v3)
  redfuser_cpu_kernels(avx512 -march=x86-64-v4 -mprefer-vector-width=512)
endif()
