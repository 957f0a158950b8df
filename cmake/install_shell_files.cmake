# SPDX-License-Identifier: Apache-2.0
# Completions and manual pages, which the program that was built writes itself, where shells and man
# look for them. Runs while `cmake --install` does: the variables of cmake/install.cmake are set.
function(outrider_install_shell_files program)
  string(RANDOM LENGTH 12 name)  # tests install several times at once
  set(made ${OUTRIDER_SHELL_FILES}/${name})
  file(MAKE_DIRECTORY ${made}/man1)
  foreach(shell bash zsh fish)
    execute_process(COMMAND ${program} completion ${shell}
                    OUTPUT_FILE ${made}/${shell} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND ${program} man ${made}/man1 COMMAND_ERROR_IS_FATAL ANY)

  # Debian's zsh looks for those of packages (which are put together in a folder .../usr) there.
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
