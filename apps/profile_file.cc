#include "profile_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "outrider/error.h"
#include "terminal.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

// As Linux tells it; elsewhere all processors are one.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line;
  }
  return "";
}

// A model's files as they are now: another model at the same place is another model.
std::string state_of_model(const std::string& model) {
  std::error_code ignored;
  const fs::path path = fs::weakly_canonical(model, ignored);
  std::string state = path.string();
  const auto add = [&](const fs::path& file) {
    const auto size = fs::file_size(file, ignored);
    if (ignored) return;
    const auto time = fs::last_write_time(file, ignored).time_since_epoch().count();
    state += fmt::format(" {}:{}", size, time);
  };
  if (fs::is_directory(path, ignored)) {
    add(path / "config.json");
    add(path / "model.safetensors");
  } else {
    add(path);
  }
  return state;
}

// FNV-1a: a name for a file, nothing to be relied on.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t value = 14695981039346656037U;
  for (const char byte : text) {
    value = (value ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  return value;
}

fs::path cache_folder() {
  const auto from = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path cache = from("XDG_CACHE_HOME"); cache.is_absolute()) return cache;
  const fs::path home = from("HOME");
  return home.is_absolute() ? home / ".cache" : fs::path();
}

}  // namespace

ProfileFile::ProfileFile(const ModelFlags& flags) {
  const SpeculationOptions speculation = speculation_of(flags);
  plans_ = speculation.adaptive && speculation.drafter != "none";
  if (!plans_ || flags.profile == "none") return;
  is_named_ = !flags.profile.empty();
  if (is_named_) {
    path_ = flags.profile;
    return;
  }
  const fs::path folder = cache_folder();
  if (folder.empty()) return;
  const std::string about =
      fmt::format("{}\n{}\n{} {} {} {} {}\n", processor_name(), state_of_model(flags.model),
                  flags.options.weights, flags.options.kv, flags.options.threads,
                  flags.options.kernels, speculation.drafter);
  path_ = folder / "outrider" / "profiles" / fmt::format("{:016x}.json", hash_of(about));
}

void ProfileFile::prepare(Generator& generator) const {
  if (!plans_) return;
  std::error_code ignored;
  if (!path_.empty() && fs::exists(path_, ignored)) {
    try {
      generator.load_drafting_profile(path_);
      return;
    } catch (const Error& error) {
      fmt::print(stderr, "outrider: {}; costs of passes are measured anew\n",
                 one_line(error.what()));
    }
  }
  generator.measure_passes();
}

void ProfileFile::save(const Generator& generator) const {
  if (!plans_ || path_.empty()) return;
  std::error_code ignored;
  if (!is_named_) fs::create_directories(path_.parent_path(), ignored);
  try {
    generator.save_drafting_profile(path_);
  } catch (const Error& error) {
    // A cache that cannot be written is what it is; a file that was asked for is missed.
    if (is_named_) fmt::print(stderr, "outrider: {}\n", one_line(error.what()));
  }
}

}  // namespace outrider::cli
