# Links a target of the wheel with equal functions once, and without those that nothing calls, where
# the linker can.
include(CheckLinkerFlag)
set(fold_functions -fuse-ld=gold -Wl,--icf=safe,--gc-sections)
check_linker_flag(CXX "${fold_functions}" REDFUSER_FOLDS_FUNCTIONS)
function(fold_functions target)
  if(REDFUSER_FOLDS_FUNCTIONS)
    target_link_options(${target} PRIVATE ${fold_functions})
  endif()
endfunction()
