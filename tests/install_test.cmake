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
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/tests/install -B ${WORK_DIR}/build
    -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${BUILD_DIR}/tools/make_tiny_pair ${WORK_DIR}/pair)
run(${WORK_DIR}/build/outside ${WORK_DIR}/pair/target ${WORK_DIR}/pair/draft)
run(${WORK_DIR}/prefix/bin/outrider --help)
run(${WORK_DIR}/prefix/bin/outrider eval --list)
foreach(file bash-completion/completions/outrider zsh/site-functions/_outrider
        fish/vendor_completions.d/outrider.fish man/man1/outrider-generate.1)
  if(NOT EXISTS ${WORK_DIR}/prefix/share/${file})
    message(FATAL_ERROR "not installed: share/${file}")
  endif()
endforeach()
