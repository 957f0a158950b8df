# SPDX-License-Identifier: Apache-2.0
# Installs completions and manual pages to the folders in which shells and man search. The built
# program writes them. `cmake --install` runs this script; cmake/install.cmake sets its variables.
function(outrider_install_shell_files program)
  string(RANDOM LENGTH 12 name)  # tests may run several installs at once
  set(made ${OUTRIDER_SHELL_FILES}/${name})
  file(MAKE_DIRECTORY ${made}/man1)
  foreach(shell bash zsh fish)
    execute_process(COMMAND ${program} completion ${shell}
                    OUTPUT_FILE ${made}/${shell} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND ${program} man ${made}/man1 COMMAND_ERROR_IS_FATAL ANY)

  # Debian's zsh searches this folder for completions of packages (built in a folder .../usr).
  set(zsh_folder zsh/site-functions)
  if(CMAKE_INSTALL_PREFIX MATCHES "/usr$" AND EXISTS /etc/debian_version)
    set(zsh_folder zsh/vendor-completions)
  endif()
  set(data ${CMAKE_INSTALL_PREFIX}/${OUTRIDER_DATA_FOLDER})
  file(INSTALL ${made}/bash DESTINATION ${data}/bash-completion/completions RENAME outrider)
  file(INSTALL ${made}/zsh DESTINATION ${data}/${zsh_folder} RENAME _outrider)
  file(INSTALL ${made}/fish DESTINATION ${data}/fish/vendor_completions.d RENAME outrider.fish)
  file(INSTALL ${made}/man1 DESTINATION ${CMAKE_INSTALL_PREFIX}/${OUTRIDER_MAN_FOLDER})
  file(REMOVE_RECURSE ${made})
endfunction()
