// SPDX-License-Identifier: Apache-2.0
// The models of a server: one, or those of a folder, loaded on demand.
#ifndef OUTRIDER_SERVER_MODEL_SHELF_H_
#define OUTRIDER_SERVER_MODEL_SHELF_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/metrics.h"
#include "server/served_model.h"

namespace outrider::server {

// Thread-safe.
class ModelShelf {
 public:
  // Loads a model by name; throws what loading throws.
  using Load = std::function<std::shared_ptr<const ServedModel>(const std::string& name)>;

  // One model, which serves requests with any model name.
  explicit ModelShelf(std::shared_ptr<const ServedModel> model);
  // names: the available models. At most max_loaded >= 1 of them are loaded at a time.
  ModelShelf(std::vector<std::string> names, std::size_t max_loaded, Load load,
             std::shared_ptr<Metrics> metrics);

  // The model if it is loaded; null: it must be loaded first. An empty name means the only one.
  // Throws ApiError (404 for an unknown name; 400 if there are several and none is named).
  std::shared_ptr<const ServedModel> loaded(const std::string& name);
  // The model, loaded if necessary. To make room, the least recently requested one is unloaded once
  // its requests have ended. Waits for both. Throws ApiError; 503 if loading fails.
  std::shared_ptr<const ServedModel> get(const std::string& name);

  // EngineLoop::wait_until_idle() of all models.
  void wait_until_idle() const;

  struct Entry {
    std::string name;
    std::shared_ptr<const ServedModel> model;  // null: not loaded
  };
  std::vector<Entry> list() const;
  // Model::failure() of the first loaded model that has one.
  std::string failure() const;
  Metrics& metrics() const { return *metrics_; }

 private:
  struct Place {
    std::shared_ptr<const ServedModel> model;
    bool loads = false;         // a thread is loading it
    std::int64_t last_use = 0;  // value of clock_
  };
  Place& place_of(const std::string& name);
  void make_room(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Metrics> metrics_;
  Load load_;
  std::size_t max_loaded_ = 1;
  bool any_name_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Place> places_;
  std::int64_t clock_ = 0;
};

// Models in a folder: GGUF files, by name without ".gguf" (of a split file the first part), and
// directories with a config.json. Names that begin with a dot are left out. Throws Error for a
// folder that cannot be read, and for one without models.
std::map<std::string, std::string> models_in(const std::string& folder);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_MODEL_SHELF_H_
