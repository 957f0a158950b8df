# SPDX-License-Identifier: Apache-2.0
# Tests other than unit tests and end-to-end tests. Included by tests/CMakeLists.txt.

# A program outside the project builds against the installed files with either compiler. (Not for
# sanitized builds: the program would have to link the sanitizer.)
if(NOT OUTRIDER_SANITIZE)
  set(consumer_compilers ${CMAKE_CXX_COMPILER})
  find_program(OUTRIDER_CLANG clang++)
  mark_as_advanced(OUTRIDER_CLANG)
  if(OUTRIDER_CLANG)
    list(APPEND consumer_compilers ${OUTRIDER_CLANG})
  endif()
  list(REMOVE_DUPLICATES consumer_compilers)
  foreach(compiler ${consumer_compilers})
    get_filename_component(compiler_name ${compiler} NAME)
    add_test(NAME install.${compiler_name} COMMAND ${CMAKE_COMMAND}
      -D BUILD_DIR=${PROJECT_BINARY_DIR} -D SOURCE_DIR=${PROJECT_SOURCE_DIR}
      -D WORK_DIR=${PROJECT_BINARY_DIR}/install_test/${compiler_name} -D COMPILER=${compiler}
      -P ${CMAKE_CURRENT_LIST_DIR}/install_test.cmake)
  endforeach()
endif()

# The packages of `make deb`.
if(NOT OUTRIDER_SANITIZE)
  add_test(NAME check.package COMMAND ${CMAKE_COMMAND}
    -D BUILD_DIR=${PROJECT_BINARY_DIR} -D WORK_DIR=${PROJECT_BINARY_DIR}/package_test
    -D VERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_DIR}/package_test.cmake)
  set_tests_properties(check.package PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: " TIMEOUT 900)
endif()

# The documentation has no broken links. If mkdocs and Doxygen are installed, the site is built without
# a warning.
find_program(OUTRIDER_PYTHON3 python3)
mark_as_advanced(OUTRIDER_PYTHON3)
if(OUTRIDER_PYTHON3)
  add_test(NAME check.links COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-links)
  # Every source names its licence.
  add_test(NAME check.spdx COMMAND ${PROJECT_SOURCE_DIR}/scripts/spdx --check)
  set_tests_properties(check.links check.spdx PROPERTIES LABELS fast)
endif()
find_program(OUTRIDER_MKDOCS mkdocs)
find_program(OUTRIDER_DOXYGEN doxygen)
mark_as_advanced(OUTRIDER_MKDOCS OUTRIDER_DOXYGEN)
if(OUTRIDER_MKDOCS AND OUTRIDER_DOXYGEN)
  add_test(NAME check.docs COMMAND ${PROJECT_SOURCE_DIR}/scripts/build-docs)
else()
  add_test(NAME check.docs COMMAND ${CMAKE_COMMAND} -E echo
           "SKIPPED: no mkdocs or no doxygen (scripts/install-deps docs)")
endif()
set_tests_properties(check.docs PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION "SKIPPED: ")

# Checks the report of ptxas and the machine code of the CUDA kernels; skipped with the reason if there
# is no nvcc.
if(OUTRIDER_PYTHON3)
  add_test(NAME check.cubins COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-cubins
           ${OUTRIDER_CUBIN_FOLDER} ${OUTRIDER_CUBIN_ARCHITECTURES})
  set_tests_properties(check.cubins PROPERTIES SKIP_RETURN_CODE 77)
endif()

# Runs the Python package's tests with the extension of this build; skipped with the reason if the
# extension, NumPy or pytest is missing. (A sanitized extension needs a runtime that is loaded before
# Python: scripts/test-python --asan.)
if(NOT OUTRIDER_SANITIZE)
  add_test(NAME check.python COMMAND ${PROJECT_SOURCE_DIR}/scripts/test-python
           --build ${PROJECT_BINARY_DIR})
  set_tests_properties(check.python PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2 COST 500
                       TIMEOUT 900)
endif()

# Checks that depend on the version of a tool, or take minutes: `ctest -C Check`, as in .ci/run.
function(outrider_add_check name)
  add_test(NAME check.${name} CONFIGURATIONS Check COMMAND ${ARGN}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # PROCESSORS: these checks run in parallel themselves. COST: ctest starts the long ones first.
  set_tests_properties(check.${name} PROPERTIES PROCESSORS 2 COST 1000 TIMEOUT 1500)
endfunction()
outrider_add_check(format scripts/format --check)
# Lints the files of the last sixty commits, for at most ten minutes. All files take half an hour if
# nothing is cached (`ctest -C Nightly -R lint_all`).
outrider_add_check(lint scripts/lint --recent 60 --seconds 600)
add_test(NAME check.lint_all CONFIGURATIONS Nightly COMMAND scripts/lint
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(check.lint_all PROPERTIES PROCESSORS 2 TIMEOUT 5400)
# What a newcomer does, in a fresh clone, and the Python package as pip builds it: each builds the
# program. The README's `make test` is left out, since it would run all of these tests again.
add_test(NAME check.newcomer CONFIGURATIONS Nightly
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/try-as-newcomer --skip "make test")
add_test(NAME check.wheel CONFIGURATIONS Nightly COMMAND ${PROJECT_SOURCE_DIR}/scripts/test-wheel)
set_tests_properties(check.newcomer check.wheel PROPERTIES PROCESSORS 2 TIMEOUT 7200
                     SKIP_RETURN_CODE 77)
# Runs the layers that read untrusted files under AddressSanitizer and UndefinedBehaviorSanitizer.
outrider_add_check(sanitized_readers scripts/sanitized-tests asan base grammar io tokenizer)
# The CUDA kernels on fibers, and the texts of every drafter on them, under the same sanitizers.
add_test(NAME check.sanitized_cuda CONFIGURATIONS Nightly
         COMMAND ${CMAKE_COMMAND} -E env "ONLY=Cuda|Emulated"
                 ${PROJECT_SOURCE_DIR}/scripts/sanitized-tests asan device engine
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(check.sanitized_cuda PROPERTIES PROCESSORS 2 TIMEOUT 7200)
# Runs the official clients of OpenAI and Anthropic if PyPI can be reached.
outrider_add_check(clients scripts/test-clients $<TARGET_FILE:outrider_program>)
set_tests_properties(check.clients PROPERTIES SKIP_RETURN_CODE 77)
# Runs the server's page in headless Chromium if it is installed.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  outrider_add_check(page ${Python3_EXECUTABLE} tests/page/try_page.py
                     --program $<TARGET_FILE:outrider_program>)
  set_tests_properties(check.page PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  # Every command of the documents runs with the shipped models, or is said to be run elsewhere.
  outrider_add_check(commands ${Python3_EXECUTABLE} tests/documents/check_commands.py
                     --program $<TARGET_FILE:outrider_program>)
  # The documents' figures match their data. This depends on no tool's version, so it runs with all
  # tests.
  add_test(NAME check.figures COMMAND ${Python3_EXECUTABLE} tools/draw_figures.py --check
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # No folder has more than 40 files, and every included file exists.
  add_test(NAME check.folders COMMAND ${Python3_EXECUTABLE} tools/include_graph.py --check
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check.figures check.folders PROPERTIES LABELS fast)
endif()
