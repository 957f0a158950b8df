// SPDX-License-Identifier: Apache-2.0
#include "base/files/gnuplot.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/files/atomic_file.h"

namespace outrider {
// In single quotes gnuplot takes everything literally, except the quote, which is doubled.
std::string gnuplot_text(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    result += c;
    if (c == '\'') result += c;
  }
  return result + "'";
}

bool draw_with_gnuplot(const std::filesystem::path& picture, int width, int height,
                       std::string_view script) {
  const std::string terminal = picture.extension() == ".png"
                                   ? "png noenhanced font 'sans,11' background '#ffffff'"
                                   : "svg noenhanced font 'sans,12' background 'white'";
  const std::filesystem::path file = picture.string() + ".gnuplot";
  write_file_atomically(file, fmt::format("set terminal {} size {},{}\nset output {}\n{}", terminal,
                                          width, height, gnuplot_text(picture.string()), script));
  std::string program = "gnuplot";
  std::string argument = file.string();
  std::array<char*, 3> arguments = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (error == 0) {
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  return error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace outrider
