// SPDX-License-Identifier: Apache-2.0
// /slots/N?action=save|restore|erase, in llama-server's form: saves an ended text with its keys and
// values to a file, and restores it.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/atomic_file.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"
#include "server/endpoints/endpoints.h"

namespace outrider::server {
namespace {

int read_slot(const Call& call) {
  const std::string_view path = call.request->path;
  const std::string_view number = path.substr(path.rfind('/') + 1);
  const int n_slots = call.model->slots().size();
  int slot = -1;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), slot);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size() || slot < 0 ||
      slot >= n_slots) {
    throw ApiError(404, fmt::format("slot: expected 0 to {}, got '{}'", n_slots - 1, number));
  }
  return slot;
}

// Only a name: nothing outside the folder, and no hidden file.
std::filesystem::path read_file(JsonFields& body, const std::string& folder) {
  constexpr std::size_t kMaxBytes = 200;  // file systems allow 255, and a suffix is added
  const std::string name = body.require_text("filename");
  const bool is_bare = !name.empty() && name.size() <= kMaxBytes && name.front() != '.' &&
                       !name.ends_with(AtomicFile::kPartialSuffix) &&
                       name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!is_bare) {
    body.refuse("filename",
                fmt::format("a file's name without a folder, of {} bytes at most", kMaxBytes),
                fmt::format("'{}'", name));
  }
  return std::filesystem::path(folder) / name;
}

// Runs `work` between the batch's steps, and answers with its result.
void answer_with(const Call& call, std::function<Json(Batch&)> work) {
  call.model->loop().post([reply = call.reply, work = std::move(work)](Batch& batch) {
    try {
      send_json(*reply, work(batch));
    } catch (...) {
      reply->send(error_response(api_error_of(std::current_exception())));
    }
    return false;
  });
}

class Stopwatch {
 public:
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

RequestId require_text_in(const Slots& slots, int slot) {
  const auto text = slots.at(slot);
  if (!text) {
    throw ApiError(400, fmt::format("slot {} has no text: expected one that has ended in it", slot),
                   "id_slot");
  }
  return *text;
}

}  // namespace

void slots(const Call& call) {
  const std::string& folder = call.model->options().slot_folder;
  if (folder.empty()) {
    throw ApiError(501, "this server saves no texts: it was started without --slot-save-path");
  }
  const int slot = read_slot(call);
  JsonFields body(*call.body);
  body.accept({"model"});
  const std::string_view query = call.request->query;
  const auto model = call.model;
  if (query == "action=erase") {
    body.finish();
    return answer_with(call, [model, slot](Batch& batch) {
      const std::int64_t n_erased = batch.drop_text(require_text_in(model->slots(), slot));
      if (n_erased == 0) {
        throw ApiError(400,
                       "expected a text that has ended and is kept, got one that runs or gave "
                       "way to others",
                       "id_slot");
      }
      model->slots().clear(slot);
      return Json{{"id_slot", slot}, {"n_erased", n_erased}};
    });
  }
  if (query != "action=save" && query != "action=restore") {
    throw ApiError(400, fmt::format("action: expected save, restore or erase, got '{}'", query),
                   "action");
  }
  const std::filesystem::path path = read_file(body, folder);
  body.finish();
  if (query == "action=save") {
    return answer_with(call, [model, slot, path](Batch& batch) {
      const Stopwatch watch;
      const SavedText saved = batch.save_text(require_text_in(model->slots(), slot), path);
      return Json{{"id_slot", slot},
                  {"filename", path.filename().string()},
                  {"n_saved", saved.n_tokens},
                  {"n_written", saved.n_bytes},
                  {"timings", {{"save_ms", watch.milliseconds()}}}};
    });
  }
  answer_with(call, [model, slot, path](Batch& batch) {
    const Stopwatch watch;
    const SavedText loaded = batch.load_text(path);
    model->slots().put(slot, loaded.id);
    return Json{{"id_slot", slot},
                {"filename", path.filename().string()},
                {"n_restored", loaded.n_tokens},
                {"n_read", loaded.n_bytes},
                {"timings", {{"restore_ms", watch.milliseconds()}}}};
  });
}

}  // namespace outrider::server
