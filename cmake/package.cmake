# SPDX-License-Identifier: Apache-2.0
# Debian packages, made by `cpack -G DEB` in a build folder (make deb): outrider, the program;
# outrider-train, the trainer, if it was built (it needs libtorch); liboutrider-dev, the library and its
# headers. Version and description are those of the project (CMakeLists.txt).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME outrider)
set(CPACK_PACKAGE_VENDOR Outrider)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
# The maintainer of a package is whoever builds it.
set(OUTRIDER_PACKAGE_CONTACT "the builder of this package" CACHE STRING
    "Name and address of a Debian package's maintainer")
set(CPACK_PACKAGE_CONTACT "${OUTRIDER_PACKAGE_CONTACT}")

set(CPACK_COMPONENTS_ALL program development)
if(TARGET outrider_train_program)
  list(APPEND CPACK_COMPONENTS_ALL trainer)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME outrider)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "The program outrider: generate, chat, serve and measure.")
set(CPACK_DEBIAN_TRAINER_PACKAGE_NAME outrider-train)
set(CPACK_COMPONENT_TRAINER_DESCRIPTION "What 'outrider train' trains drafters and heads with.")
set(CPACK_DEBIAN_TRAINER_PACKAGE_DEPENDS "outrider (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME liboutrider-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The library, its headers and find_package(outrider).")
# The packages that outriderConfig.cmake finds.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libfmt-dev, libpcre2-dev, libutf8proc-dev, libdivsufsort-dev, pkg-config")

# Debian requires this file name for a package's licence.
foreach(component_package program/outrider trainer/outrider-train development/liboutrider-dev)
  get_filename_component(component ${component_package} DIRECTORY)
  get_filename_component(package ${component_package} NAME)
  if(component IN_LIST CPACK_COMPONENTS_ALL)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
            RENAME copyright COMPONENT ${component})
  endif()
endforeach()
include(CPack)
