# SPDX-License-Identifier: Apache-2.0
# Labels for ctest -L: `proof` (long tests: enumerated distributions, bit identity, mutants), `real`
# (trained models; tests of ../shared/data are skipped if the folder is missing), `fast` (all other unit
# and end-to-end tests). A suite's file decides its label. Tests of packages, documents and other
# languages have no label.
set(proof_files "/proofs/|(exactness|mutants|bits|bit_identity)_test\\.cc$")
set(real_files "/real/|/(real_[a-z_]+|story_models|sentencepiece_equality)_test\\.cc$")

# Sets `result` to GoogleTest's patterns for all suites of these files.
function(outrider_suite_patterns result)
  set(patterns "")
  foreach(file IN LISTS ARGN)
    file(STRINGS ${file} tests REGEX "^(TYPED_)?TEST(_[FP])?\\(")
    foreach(test IN LISTS tests)
      if(test MATCHES "\\(([A-Za-z0-9_]+),")
        # TEST_P puts the name of the instance before the suite's; typed tests put a number after it.
        list(APPEND patterns ${CMAKE_MATCH_1}.* */${CMAKE_MATCH_1}.* ${CMAKE_MATCH_1}/*)
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES patterns)
  list(JOIN patterns ":" patterns)
  set(${result} "${patterns}" PARENT_SCOPE)
endfunction()

# Adds the tests of a program, each with its label. ctest lists the tests of each program before it runs
# any. The first load of libtorch's 400 MB from a slow disk takes longer than CMake's default limit of
# five seconds, after which no test would run.
function(outrider_discover_tests name)
  set(proofs "")
  set(reals "")
  get_target_property(sources ${name} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    if(NOT path MATCHES "_test\\.cc$")
      continue()
    elseif("/${path}" MATCHES "${real_files}")
      list(APPEND reals ${source})
    elseif("/${path}" MATCHES "${proof_files}")
      list(APPEND proofs ${source})
    endif()
  endforeach()
  set(others "")
  foreach(label proof real)
    outrider_suite_patterns(patterns ${${label}s})
    if(patterns)
      outrider_discover_labelled(${name} ${label} "${patterns}")
      string(APPEND others ":${patterns}")
    endif()
  endforeach()
  string(REGEX REPLACE "^:" "-" others "${others}")
  outrider_discover_labelled(${name} fast "${others}")
endfunction()

function(outrider_discover_labelled name label filter)
  set(which "")
  if(filter)
    set(which TEST_FILTER "${filter}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
                       DISCOVERY_TIMEOUT 300 ${which}
                       PROPERTIES TIMEOUT 900 LABELS ${label} ${test_environment})
endfunction()

# For a program that takes long to start: ctest knows its suites, and runs each in one process. A
# test that is skipped says so in its suite's output only.
function(outrider_discover_suites name)
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "set(name ${name})
set(program $<TARGET_FILE:${name}>)
set(properties TIMEOUT 900 LABELS fast ${test_environment})
include(${PROJECT_SOURCE_DIR}/tests/suites.cmake)
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
