# SPDX-License-Identifier: Apache-2.0
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# Each component is a package (cmake/package.cmake); `cmake --install` installs all of them.
install(TARGETS outrider EXPORT outriderTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS outrider_program
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET outrider_train_program)
  install(TARGETS outrider_train_program
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT trainer)
endif()
if(TARGET outrider_mpi)
  install(TARGETS outrider_mpi
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/outrider COMPONENT program)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tasks
  DESTINATION ${CMAKE_INSTALL_DATADIR}/outrider COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/outrider
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/outrider)
install(EXPORT outriderTargets NAMESPACE outrider::
  DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/outriderConfig.cmake.in
  ${PROJECT_BINARY_DIR}/outriderConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/outriderConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/outriderConfig.cmake
  ${PROJECT_BINARY_DIR}/outriderConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)

# Completions and manual pages. The program writes them, so it must run here: a program for another
# machine or with sanitizers does not.
if(NOT CMAKE_CROSSCOMPILING AND NOT OUTRIDER_SANITIZE)
  install(CODE "
    set(OUTRIDER_SHELL_FILES \"${PROJECT_BINARY_DIR}/shell_files\")
    set(OUTRIDER_DATA_FOLDER \"${CMAKE_INSTALL_DATADIR}\")
    set(OUTRIDER_MAN_FOLDER \"${CMAKE_INSTALL_MANDIR}\")
    include(\"${CMAKE_CURRENT_LIST_DIR}/install_shell_files.cmake\")
    outrider_install_shell_files(\"$<TARGET_FILE:outrider_program>\")"
    COMPONENT program)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/package.cmake)
