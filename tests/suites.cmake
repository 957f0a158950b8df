# SPDX-License-Identifier: Apache-2.0
# Read by ctest (labels.cmake): a test for every suite of `program`.
if(NOT EXISTS ${program})
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  return()
endif()
execute_process(COMMAND ${program} --gtest_list_tests TIMEOUT 300
                OUTPUT_VARIABLE listed RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${program} --gtest_list_tests: ${status}")
endif()
# A suite's line begins at the margin and ends with a dot, or with a comment behind it.
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\.[ \n]" suites "\n${listed}")
if(NOT suites)
  message(FATAL_ERROR "${program} lists no suite")
endif()
foreach(suite IN LISTS suites)
  string(STRIP "${suite}" suite)
  add_test("${name}.${suite}*" ${program} "--gtest_filter=${suite}*"
           --gtest_also_run_disabled_tests)
  set_tests_properties("${name}.${suite}*" PROPERTIES ${properties})
endforeach()
