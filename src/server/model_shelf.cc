// SPDX-License-Identifier: Apache-2.0
#include "server/model_shelf.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "outrider/error.h"
#include "server/api_error.h"

namespace outrider::server {

ModelShelf::ModelShelf(std::shared_ptr<const ServedModel> model)
    : metrics_(model->options().metrics), any_name_(true) {
  const std::string name = model->name();
  places_[name].model = std::move(model);
}

ModelShelf::ModelShelf(std::vector<std::string> names, std::size_t max_loaded, Load load,
                       std::shared_ptr<Metrics> metrics)
    : metrics_(std::move(metrics)), load_(std::move(load)), max_loaded_(max_loaded) {
  for (std::string& name : names) places_[std::move(name)];
}

// Called with the mutex held.
ModelShelf::Place& ModelShelf::place_of(const std::string& name) {
  if (any_name_ || (name.empty() && places_.size() == 1)) return places_.begin()->second;
  std::vector<std::string_view> names;
  for (const auto& [known, place] : places_) names.push_back(known);
  if (name.empty()) {
    throw ApiError(400, fmt::format("model: expected one of {}, got none", fmt::join(names, ", ")),
                   "model");
  }
  const auto at = places_.find(name);
  if (at != places_.end()) return at->second;
  throw ApiError(404,
                 fmt::format("model: expected one of {}, got '{}'", fmt::join(names, ", "), name),
                 "model", "model_not_found");
}

std::shared_ptr<const ServedModel> ModelShelf::loaded(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Place& place = place_of(name);
  place.last_use = ++clock_;
  return place.model;
}

// Makes it possible to load one more model: unloads the least recently requested one without active
// requests. If all have some, it waits.
void ModelShelf::make_room(std::unique_lock<std::mutex>& lock) {
  // There is no notification when a model's last request ends.
  constexpr std::chrono::milliseconds kPause(50);
  for (;;) {
    std::size_t n_loaded = 0;
    Place* oldest = nullptr;
    for (auto& [name, place] : places_) {
      if (place.model == nullptr && !place.loads) continue;
      ++n_loaded;
      if (place.model == nullptr || place.model->loop().n_in_flight() > 0) continue;
      if (oldest == nullptr || place.last_use < oldest->last_use) oldest = &place;
    }
    // The model to be loaded is counted already.
    if (n_loaded <= max_loaded_) return;
    if (oldest != nullptr) {
      // Destroyed before the next is loaded: there may not be memory for both.
      std::shared_ptr<const ServedModel> leaving = std::exchange(oldest->model, nullptr);
      lock.unlock();
      leaving.reset();
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, kPause);
  }
}

std::shared_ptr<const ServedModel> ModelShelf::get(const std::string& name) {
  std::unique_lock lock(mutex_);
  Place& place = place_of(name);
  place.last_use = ++clock_;
  changed_.wait(lock, [&place] { return !place.loads; });
  if (place.model != nullptr) return place.model;
  place.loads = true;
  make_room(lock);
  lock.unlock();
  std::shared_ptr<const ServedModel> model;
  std::string problem;
  try {
    model = load_(name);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  lock.lock();
  place.loads = false;
  place.model = model;
  changed_.notify_all();
  if (model == nullptr) throw ApiError(503, fmt::format("model {}: {}", name, problem), "model");
  return model;
}

std::vector<ModelShelf::Entry> ModelShelf::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> entries;
  for (const auto& [name, place] : places_) entries.push_back({name, place.model});
  return entries;
}

std::string ModelShelf::failure() const {
  for (const Entry& entry : list()) {
    std::string failure = entry.model == nullptr ? "" : entry.model->model().failure();
    if (!failure.empty()) return failure;
  }
  return {};
}

void ModelShelf::wait_until_idle() const {
  for (const Entry& entry : list()) {
    if (entry.model != nullptr) entry.model->loop().wait_until_idle();
  }
}

std::map<std::string, std::string> models_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path& path = entry.path();
    const std::string file = path.filename().string();
    if (file.starts_with('.')) continue;
    if (entry.is_directory()) {
      if (fs::exists(path / "config.json")) models[file] = path.string();
      continue;
    }
    if (path.extension() != ".gguf") continue;
    std::string name = path.stem().string();
    // "NAME-00001-of-00003": the first part represents all.
    if (const std::size_t part = name.rfind("-of-"); part != std::string::npos) {
      const std::size_t number = name.rfind('-', part - 1);
      const bool is_part = number != std::string::npos && part - number == 6;
      if (is_part && name.substr(number + 1, 5) != "00001") continue;
      if (is_part) name.resize(number);
    }
    models[name] = path.string();
  }
  if (error) throw Error("list models", folder, "a folder", error.message());
  if (models.empty()) {
    throw Error("list models", folder, "GGUF files, or directories with a config.json", "none");
  }
  return models;
}

}  // namespace outrider::server
