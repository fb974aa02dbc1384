# Labels the tests of a gtest program with the folders of their sources, for `ctest -L folder`.
#
#   cmake -DPROGRAM=... -DPREFIX=... -DLISTING=file.json -DLABELS=file.cmake -P labels.cmake
#
# LISTING is gtest's list of tests with their source files, LABELS a script that CTest reads.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_output=json:${LISTING}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${LISTING} lines REGEX "^ +\"(name|file)\": ")
set(folders "")
foreach(line IN LISTS lines)
  string(REPLACE "\\/" "/" line "${line}")
  if(line MATCHES "^      \"name\": \"(.*)\",$")
    set(suite "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^          \"name\": \"(.*)\",$")
    set(name "${CMAKE_MATCH_1}")
  elseif(line MATCHES "/([^/]+)/[^/]+\",$")
    list(APPEND folders ${CMAKE_MATCH_1})
    list(APPEND tests_${CMAKE_MATCH_1} "${PREFIX}${suite}.${name}")
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
set(script "")
foreach(folder IN LISTS folders)
  list(JOIN tests_${folder} "]=]\n  [=[" names)
  string(APPEND script "set_tests_properties(\n  [=[${names}]=]\n  PROPERTIES LABELS ${folder})\n")
endforeach()
file(WRITE ${LABELS} "${script}")
