# SPDX-License-Identifier: Apache-2.0
# Makes Debian packages of the build and checks the contents of the program's package.
#   cmake -D BUILD_DIR=... -D WORK_DIR=... -D VERSION=... -P package_test.cmake
cmake_policy(VERSION 3.22)
find_program(DPKG_DEB dpkg-deb)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(NOT DPKG_DEB OR NOT DPKG_SHLIBDEPS)
  message("SKIPPED: no dpkg-deb or no dpkg-shlibdeps (Debian's dpkg-dev)")
  return()
endif()
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
execute_process(COMMAND ${CMAKE_CPACK_COMMAND} -G DEB --config ${BUILD_DIR}/CPackConfig.cmake
                        -B ${WORK_DIR}/packages
                WORKING_DIRECTORY ${WORK_DIR} COMMAND_ERROR_IS_FATAL ANY)

file(GLOB packages ${WORK_DIR}/packages/*.deb)
set(names outrider liboutrider-dev)
if(EXISTS ${BUILD_DIR}/outrider-train)
  list(APPEND names outrider-train)
endif()
foreach(name ${names})
  set(of_name ${packages})
  list(FILTER of_name INCLUDE REGEX "/${name}_${VERSION}_[a-z0-9]+\\.deb$")
  list(LENGTH of_name n)
  if(NOT n EQUAL 1)
    message(FATAL_ERROR "packages: expected one of ${name} ${VERSION}, got ${packages}")
  endif()
  set(${name}_package ${of_name})
endforeach()

if(outrider-train_package)
  execute_process(COMMAND ${DPKG_DEB} -c ${outrider-train_package}
                  OUTPUT_VARIABLE contents COMMAND_ERROR_IS_FATAL ANY)
  if(NOT contents MATCHES "/usr/bin/outrider-train\n")
    message(FATAL_ERROR "outrider-train: expected the program in it, got ${contents}")
  endif()
endif()

execute_process(COMMAND ${DPKG_DEB} -f ${outrider_package} Version Depends
                OUTPUT_VARIABLE fields COMMAND_ERROR_IS_FATAL ANY)
foreach(part "Version: ${VERSION}" libc6 libpcre2)
  if(NOT fields MATCHES "${part}")
    message(FATAL_ERROR "fields: expected ${part} in them, got ${fields}")
  endif()
endforeach()
execute_process(COMMAND ${DPKG_DEB} -x ${outrider_package} ${WORK_DIR}/unpacked
                COMMAND_ERROR_IS_FATAL ANY)
foreach(file bin/outrider share/outrider/tasks/gsm8k.json share/doc/outrider/copyright
        share/man/man1/outrider-serve.1 share/bash-completion/completions/outrider
        share/zsh/vendor-completions/_outrider share/fish/vendor_completions.d/outrider.fish)
  if(NOT EXISTS ${WORK_DIR}/unpacked/usr/${file})
    message(FATAL_ERROR "package: expected /usr/${file} in it, got none")
  endif()
endforeach()
if(EXISTS ${WORK_DIR}/unpacked/usr/include)
  message(FATAL_ERROR "package: expected headers in liboutrider-dev alone")
endif()
execute_process(COMMAND ${WORK_DIR}/unpacked/usr/bin/outrider --version
                OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
if(NOT version STREQUAL "outrider ${VERSION}\n")
  message(FATAL_ERROR "--version: expected outrider ${VERSION}, got ${version}")
endif()
execute_process(COMMAND ${DPKG_DEB} -c ${liboutrider-dev_package}
                OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
if(NOT files MATCHES "/usr/include/outrider/generate.h" OR NOT files MATCHES "outriderConfig.cmake")
  message(FATAL_ERROR "liboutrider-dev: expected headers and outriderConfig.cmake, got ${files}")
endif()
