// The models that a server answers with: one, or those of a folder, loaded when they are asked for.
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
  // Loads a model by its name; throws what loading throws.
  using Load = std::function<std::shared_ptr<const ServedModel>(const std::string& name)>;

  // One model, which answers whatever name is asked for.
  explicit ModelShelf(std::shared_ptr<const ServedModel> model);
  // names: of the models that there are. Of them most_loaded are loaded at a time, at least 1.
  ModelShelf(std::vector<std::string> names, std::size_t most_loaded, Load load,
             std::shared_ptr<Metrics> metrics);

  // The model if it needs no loading; null: it does. An empty name means the only one. Throws
  // ApiError (404, or 400 where there are several and none is named).
  std::shared_ptr<const ServedModel> loaded(const std::string& name);
  // The model, loaded now where it is not: the one that was longest not asked for makes room, once
  // its requests have ended. Waits for both. Throws ApiError, and 503 where loading fails.
  std::shared_ptr<const ServedModel> get(const std::string& name);

  // EngineLoop::wait_until_idle() of all models.
  void wait_until_idle() const;

  struct Entry {
    std::string name;
    std::shared_ptr<const ServedModel> model;  // null: it is not loaded
  };
  std::vector<Entry> list() const;
  // Model::failure() of the first loaded model that has one.
  std::string failure() const;
  Metrics& metrics() const { return *metrics_; }

 private:
  struct Place {
    std::shared_ptr<const ServedModel> model;
    bool loads = false;         // some thread loads it
    std::int64_t last_use = 0;  // counts up
  };
  Place& place_of(const std::string& name);
  void make_room(std::unique_lock<std::mutex>& lock);

  std::shared_ptr<Metrics> metrics_;
  Load load_;
  std::size_t most_loaded_ = 1;
  bool any_name_ = false;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Place> places_;
  std::int64_t clock_ = 0;
};

// Models in a folder: GGUF files, by their names without ".gguf" (of a split file the first part),
// and directories with a config.json. Names that begin with a point are left out. Throws Error for
// a folder that cannot be read, and one without models.
std::map<std::string, std::string> models_in(const std::string& folder);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_MODEL_SHELF_H_
