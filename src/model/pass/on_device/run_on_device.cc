// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_device/run_on_device.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "device/trials/known_answers.h"
#include "model/pass/pass_builder.h"
#include "model/stored_weights.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Each doubling of a text's pages needs new programs; the older ones are not used again.
constexpr std::size_t kMaxPrograms = 64;

}  // namespace

DevicePass::DevicePass(PassList list, const ModelConfig& config, const Machine& machine)
    : PassExecutor(std::move(list), &config, machine.kv),
      machine_(machine),
      schedules_(list_),
      weights_(machine.device),
      scratch_(machine.device) {
  const auto has_keys = [](const LayerCache& cache) {
    return !cache.is_recurrent() && cache.values_in_keys == 0 && cache.side == CacheSide::text;
  };
  if (list_.caches.empty() || !std::all_of(list_.caches.begin(), list_.caches.end(), has_keys)) {
    throw UsageError("load model", machine_.name,
                     "a model whose layers all keep keys and values of its text (on a device)",
                     "another one");
  }
  cache_ = std::make_shared<KvCache>(
      list_.caches, machine.kv, machine.max_cache_bytes,
      [this](std::span<const CacheGroup> groups) { return make_store(groups); });
  // All weights are uploaded now, and unsupported ops refused.
  for (int group = 0; group < static_cast<int>(cache_->groups().size()); ++group) {
    store_->begin(group);
  }
  recorded({});
  device::Step moves;  // those of the store
  moves.kernel = device::Kernel::move_slots;
  moves.variant = static_cast<std::uint32_t>(machine.kv);
  device::require_known_answers(*machine_.device, {&moves, 1});
}

std::unique_ptr<PageStore> DevicePass::make_store(std::span<const CacheGroup> groups) {
  auto store = std::make_unique<DevicePageStore>(machine_.device, groups);
  store_ = store.get();
  return store;
}

// Programs recorded with buffers that no longer exist, also after a failed allocation of larger
// ones.
void DevicePass::drop_outdated_programs() {
  if (store_->generation() == store_generation_ && scratch_.generation() == scratch_generation_)
    return;
  programs_.clear();
  store_generation_ = store_->generation();
  scratch_generation_ = scratch_.generation();
}

DevicePass::Recorded& DevicePass::recorded(const Kind& kind) {
  drop_outdated_programs();
  for (const std::unique_ptr<Recorded>& known : programs_) {
    if (known->kind == kind) return *known;
  }
  if (programs_.size() == kMaxPrograms) programs_.erase(programs_.begin());
  auto made = std::make_unique<Recorded>(
      Recorded{.kind = kind,
               .words = DeviceWords(list_, *cache_, kind.shape),
               .rows = DeviceRows(list_, kind.shape, static_cast<int>(kind.feature_layers.size()),
                                  !kind.skip_layers.empty()),
               .program = nullptr});
  made->rows.require(scratch_);
  const std::size_t n_word_bytes = made->words.n_bytes();
  drop_outdated_programs();
  if (word_buffer_ == nullptr || word_buffer_->n_bytes() < n_word_bytes) {
    programs_.clear();
    word_buffer_ = nullptr;  // freed before the larger one is allocated
    word_buffer_ = machine_.device->allocate(n_word_bytes);
  }
  const DeviceRecording recording = {.list = &list_,
                                     .cache = cache_.get(),
                                     .store = store_,
                                     .words = &made->words,
                                     .word_buffer = word_buffer_.get(),
                                     .rows = &made->rows,
                                     .scratch = &scratch_,
                                     .weights = &weights_,
                                     .max_pages = kind.shape.max_pages,
                                     .max_splits = kind.shape.max_splits(),
                                     .device_name = machine_.name};
  const std::vector<device::Step> steps =
      recording.steps_of(schedules_.of(kind.skip_layers, kind.without_output), kind.feature_layers);
  device::require_known_answers(*machine_.device, steps);
  made->program = machine_.device->record(steps);
  programs_.push_back(std::move(made));
  return *programs_.back();
}

void DevicePass::prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request) {
  require_skippable(request.skip_layers);
  now_ = nullptr;
  now_logits_ = nullptr;
  plan_.prepare(blocks, request.logits, request.skip_layers, *config_, *cache_);
  if (plan_.n_rows() == 0) return;
  now_ =
      &recorded({.shape = DevicePassShape::of(plan_),
                 .without_output = plan_.n_asked() == 0,
                 .skip_layers = {request.skip_layers.begin(), request.skip_layers.end()},
                 .feature_layers = {request.feature_layers.begin(), request.feature_layers.end()}});
}

std::shared_ptr<DistantRows> DevicePass::distant_logits() {
  if (now_ == nullptr || plan_.n_asked() == 0) return nullptr;
  std::shared_ptr<DeviceLogits>& last = last_logits_[now_->kind.skip_layers.empty() ? 0 : 1];
  if (last != nullptr && last.use_count() > 1) {
    // Another output still refers to them.
    if (last->buffer() == now_->rows.shared_logits(scratch_).get()) last->fetch_all();
    last = nullptr;
  }
  if (last == nullptr) last = std::make_shared<DeviceLogits>(machine_.device);
  return now_logits_ = last;
}

void DevicePass::run(const Outputs& outputs) {
  plan_.append_nodes();
  if (plan_.n_rows() == 0) return;
  device::Device& device = *machine_.device;
  now_->words.write(plan_, list_, *store_, words_);
  const std::size_t n_word_bytes = now_->words.n_bytes();
  device.upload(std::span(words_).first(n_word_bytes), {word_buffer_.get(), 0, n_word_bytes});
  upload_embeddings();
  device.wait(device.submit(*now_->program));

  const auto n_rows = static_cast<std::size_t>(plan_.n_rows());
  if (now_logits_ != nullptr) {
    best_.resize(static_cast<std::size_t>(plan_.n_asked()));
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(best_));
    device::Range range = now_->rows.best(scratch_);
    range.n_bytes = bytes.size();
    device.download(range, bytes);
    now_logits_->start(now_->rows.shared_logits(scratch_), now_->rows.logit_width(), best_);
  }
  const auto width = static_cast<std::size_t>(list_.buffers.front().width);
  const std::size_t n_features = outputs.feature_layers.size();
  if (n_features > 0 && features_.size() < n_rows * width) features_.resize(n_rows * width);
  for (std::size_t place = 0; place < n_features; ++place) {
    device::Range range = now_->rows.feature(scratch_, static_cast<int>(place));
    range.n_bytes = n_rows * width * sizeof(float);
    device.download(range, {reinterpret_cast<std::byte*>(features_.data()), range.n_bytes});
    for (std::size_t row = 0; row < n_rows; ++row) {
      std::copy_n(features_.data() + row * width, width,
                  outputs.features + (row * n_features + place) * width);
    }
  }
}

void DevicePass::upload_embeddings() {
  for (const Op& op : list_.ops) {
    const auto* const embed = std::get_if<op::Embed>(&op.what);
    if (embed == nullptr) continue;
    const auto width = static_cast<std::size_t>(embed->to.width);
    const std::size_t n = plan_.rows().size() * width;
    if (embedded_.size() < n) embedded_.resize(n);
    for (std::size_t i = 0; i < plan_.rows().size(); ++i) {
      const PassRow& row = plan_.rows()[i];
      const std::span<float> x = std::span(embedded_).subspan(i * width, width);
      decode_rows(*embed->table, embed->by == op::Embed::By::token ? row.token : row.position, 1,
                  x);
      if (embed->scale == 1) continue;
      for (float& value : x) value *= embed->scale;
    }
    device::Range to = now_->rows.floats(scratch_, embed->to.buffer);
    to.n_bytes = n * sizeof(float);
    machine_.device->upload(std::as_bytes(std::span(embedded_).first(n)), to);
  }
}

}  // namespace outrider
