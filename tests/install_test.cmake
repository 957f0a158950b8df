# SPDX-License-Identifier: Apache-2.0
# Installs the build into WORK_DIR, then builds tests/install against it and runs it.
#   cmake -D BUILD_DIR=... -D SOURCE_DIR=... -D WORK_DIR=... -D COMPILER=... -P install_test.cmake
cmake_policy(VERSION 3.22)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${status}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
# The README's program in C++ is built, too, and runs with models under the names that it uses.
file(READ ${SOURCE_DIR}/README.md readme)
string(REGEX MATCH "\n```cpp\n(.*)" block "${readme}")
string(FIND "${CMAKE_MATCH_1}" "\n```" end)
if(NOT block OR end LESS 100)
  message(FATAL_ERROR "README.md: expected a block of C++, got none")
endif()
string(SUBSTRING "${CMAKE_MATCH_1}" 0 ${end} program)
file(WRITE ${WORK_DIR}/readme.cc "${program}\n")
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/tests/install -B ${WORK_DIR}/build
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=Release -D README_PROGRAM=${WORK_DIR}/readme.cc)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${BUILD_DIR}/tools/make_tiny_pair ${WORK_DIR}/pair)
run(${WORK_DIR}/build/outside ${WORK_DIR}/pair/target ${WORK_DIR}/pair/draft)
file(RENAME ${WORK_DIR}/pair/target ${WORK_DIR}/pair/SmolLM2-1.7B-Instruct)
file(RENAME ${WORK_DIR}/pair/draft ${WORK_DIR}/pair/SmolLM2-135M-Instruct)
execute_process(COMMAND ${WORK_DIR}/build/readme WORKING_DIRECTORY ${WORK_DIR}/pair
                OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
if(text STREQUAL "" OR text STREQUAL "\n")
  message(FATAL_ERROR "README.md's program: expected a text, got none")
endif()
run(${WORK_DIR}/prefix/bin/outrider --help)
run(${WORK_DIR}/prefix/bin/outrider eval --list)
foreach(file bash-completion/completions/outrider zsh/site-functions/_outrider
        fish/vendor_completions.d/outrider.fish man/man1/outrider-generate.1)
  if(NOT EXISTS ${WORK_DIR}/prefix/share/${file})
    message(FATAL_ERROR "not installed: share/${file}")
  endif()
endforeach()
