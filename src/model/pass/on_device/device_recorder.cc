// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_device/device_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "device/row_steps.h"
#include "model/pass/pass_builder.h"
#include "outrider/error.h"

namespace outrider {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }
std::uint32_t word(int n) { return static_cast<std::uint32_t>(n); }

// Pieces of memory: per buffer its floats and four of its quantised form; then these.
constexpr std::size_t kPiecesOfBuffer = 5;
enum Piece {
  kLogitPiece,
  kSkippingLogitPiece,  // for passes that skip layers
  kBestPiece,
  kBestPartPiece,
  kFeaturePiece,
  kSumPiece,
  kStatePiece,
  kPieces
};

std::size_t piece_of(int buffer, std::size_t part) {
  return kPieces + size(buffer) * kPiecesOfBuffer + part;
}

}  // namespace

DeviceRows::DeviceRows(const PassList& list, const DevicePassShape& shape, int n_features,
                       bool skips_layers)
    : list_(&list), shape_(shape), n_features_(n_features), skips_layers_(skips_layers) {
  for (const Op& op : list.ops) {
    if (const auto* multiply = std::get_if<op::Multiply>(&op.what)) {
      for (int i = 0; i < multiply->n_products; ++i) {
        const Rows& to = multiply->products[size(i)].to;
        if (to.buffer == kLogits) logit_width_ = std::max(logit_width_, size(to.width));
      }
    } else if (const auto* attend = std::get_if<op::Attend>(&op.what)) {
      const std::size_t n_heads =
          size(shape.max_rows) * size(shape.max_splits()) * size(attend->attention->n_heads);
      n_sum_floats_ = std::max(n_sum_floats_, n_heads * size(attend->attention->head_dim));
      n_state_floats_ = std::max(n_state_floats_, n_heads * 2);
    }
  }
}

int DeviceRows::max_rows(int buffer) const {
  const bool asked = buffer == kLogits || list_->buffers[size(buffer)].asked;
  return asked ? shape_.max_asked : shape_.max_rows;
}

std::size_t DeviceRows::float_bytes(int buffer) const {
  const std::size_t width =
      buffer == kLogits ? logit_width_ : size(list_->buffers[size(buffer)].width);
  return size(max_rows(buffer)) * width * sizeof(float);
}

std::size_t DeviceRows::logit_piece() const {
  return skips_layers_ ? kSkippingLogitPiece : kLogitPiece;
}

std::size_t DeviceRows::best_bytes() const {
  return size(max_rows(kLogits)) * sizeof(device::BestOfRow);
}

std::size_t DeviceRows::best_part_bytes() const {
  return best_bytes() * size(device::parts_of_best(logit_width()));
}

std::size_t DeviceRows::feature_bytes() const {
  constexpr std::size_t kAlignment = device::kRangeAlignment;
  const std::size_t n_bytes =
      size(shape_.max_rows) * size(list_->buffers.front().width) * sizeof(float);
  return (n_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void DeviceRows::require(DeviceScratch& scratch) const {
  for (int buffer = 0; buffer < static_cast<int>(list_->buffers.size()); ++buffer) {
    const Buffer& its = list_->buffers[size(buffer)];
    scratch.require(piece_of(buffer, 0), float_bytes(buffer));
    if (!its.forms.int8) continue;
    const std::size_t n_groups =
        size(kernels::groups_of(its.width)) * size(kernels::row_slots(max_rows(buffer)));
    scratch.require(piece_of(buffer, 1), n_groups * kernels::kGroup);
    for (const std::size_t part : {2, 3, 4}) scratch.require(piece_of(buffer, part), n_groups * 4);
  }
  if (logit_width_ > 0) {
    scratch.require(logit_piece(), float_bytes(kLogits));
    scratch.require(kBestPiece, best_bytes());
    scratch.require(kBestPartPiece, best_part_bytes());
  }
  if (n_features_ > 0) scratch.require(kFeaturePiece, size(n_features_) * feature_bytes());
  if (n_sum_floats_ > 0) {
    scratch.require(kSumPiece, n_sum_floats_ * sizeof(float));
    scratch.require(kStatePiece, n_state_floats_ * sizeof(float));
  }
}

device::Range DeviceRows::floats(const DeviceScratch& scratch, int buffer) const {
  return scratch.of(buffer == kLogits ? logit_piece() : piece_of(buffer, 0), float_bytes(buffer));
}

std::shared_ptr<const device::Buffer> DeviceRows::shared_logits(
    const DeviceScratch& scratch) const {
  return scratch.share(logit_piece());
}

device::Range DeviceRows::best(const DeviceScratch& scratch) const {
  return scratch.of(kBestPiece, best_bytes());
}

device::Range DeviceRows::best_parts(const DeviceScratch& scratch) const {
  return scratch.of(kBestPartPiece, best_part_bytes());
}

device::QuantizedRanges DeviceRows::quantized(const DeviceScratch& scratch, int buffer) const {
  const int slots = kernels::row_slots(max_rows(buffer));
  const std::size_t n_groups =
      size(kernels::groups_of(list_->buffers[size(buffer)].width)) * size(slots);
  return {.values = scratch.of(piece_of(buffer, 1), n_groups * kernels::kGroup),
          .scales = scratch.of(piece_of(buffer, 2), n_groups * 4),
          .sums = scratch.of(piece_of(buffer, 3), n_groups * 4),
          .scaled_sums = scratch.of(piece_of(buffer, 4), n_groups * 4),
          .slots = slots};
}

device::Range DeviceRows::feature(const DeviceScratch& scratch, int place) const {
  device::Range range = scratch.of(kFeaturePiece, size(n_features_) * feature_bytes());
  range.offset = size(place) * feature_bytes();
  range.n_bytes = size(shape_.max_rows) * size(list_->buffers.front().width) * sizeof(float);
  return range;
}

device::Range DeviceRows::sums(const DeviceScratch& scratch) const {
  return scratch.of(kSumPiece, n_sum_floats_ * sizeof(float));
}

device::Range DeviceRows::states(const DeviceScratch& scratch) const {
  return scratch.of(kStatePiece, n_state_floats_ * sizeof(float));
}

namespace {

// Appends the steps of each op in order.
class Recorder {
 public:
  Recorder(const DeviceRecording& from, std::span<const int> feature_layers)
      : from_(from), feature_layers_(feature_layers) {}

  std::vector<device::Step> take() { return std::move(steps_); }

  // Runs after all ops: finds the likeliest token of each row, so that greedy verification fetches
  // no logits.
  void find_best() {
    if (!written_.contains(kLogits)) return;
    for (device::Step& step : device::best_of_rows(rows_of(kLogits), from_.rows->logit_width(),
                                                   from_.rows->floats(*from_.scratch, kLogits),
                                                   from_.rows->best_parts(*from_.scratch),
                                                   from_.rows->best(*from_.scratch))) {
      append(std::move(step));
    }
  }

  // Checked before their routers, which are refused for the type of their weights.
  void refuse_experts() const {
    for (const Op& op : from_.list->ops) {
      if (std::holds_alternative<op::Route>(op.what)) refuse("experts");
    }
  }

  // The rows are uploaded before the program runs: an earlier step's output would be overwritten.
  void operator()(const op::Embed& op) {
    if (written_.contains(op.to.buffer)) refuse("embeddings in rows that are filled before");
  }
  void operator()(const op::Angles& op) {
    if (from_.list->ropes[size(op.rope)].query_beta != 0) {
      refuse("queries that are scaled by position");
    }
  }

  void operator()(const op::Normalise& op) {
    using Takes = op::Normalise::Takes;
    if (op.takes == Takes::routed) refuse("experts");
    Rows to = op.to;
    for (int i = 0; i < op.n_parts; ++i) {
      const auto& [from, norm] = op.parts[size(i)];
      to.width = from.width;
      add_bias(from);
      const bool has_norm = norm != nullptr && !norm->empty();
      const bool removes_mean = has_norm && norm->removes_mean;
      const bool apart = is_whole(from) && is_whole(to) && from.buffer != to.buffer;
      if (removes_mean && !apart) refuse("norms in place that remove the mean");
      if (removes_mean) {
        append(layer_norm(rows_of(to.buffer), op.takes == Takes::asked, from, *norm, floats(to)));
      } else if (has_norm && norm->n_groups == 1 && op.takes == Takes::own && apart) {
        append(device::rms_norm(rows_of(to.buffer), floats(from), weights(norm->weight),
                                {.n = word(from.width), .max_rows = 0, .epsilon = norm->epsilon},
                                floats(to)));
      } else {
        if (op.takes == Takes::asked) {
          const device::Range asked = from_.words->asked(*from_.word_buffer);
          append(device::copy_rows(rows_of(to.buffer), &asked, floats(from), columns(from),
                                   floats(to), columns(to)));
        } else if (from.buffer != to.buffer) {
          append(device::copy_rows(rows_of(to.buffer), nullptr, floats(from), columns(from),
                                   floats(to), columns(to)));
        } else if (from.first != to.first) {
          refuse("norms from columns to others of a row");
        }
        if (has_norm) normalise(to, *norm, from.width / norm->n_groups, norm->n_groups);
      }
      if (op.scale != 1) {
        append(device::scale_rows(rows_of(to.buffer), floats(to), columns(to), op.scale));
      }
      to.first += from.width;
    }
    finish(op.to);
  }

  void operator()(const op::Multiply& op) {
    if (!is_whole(op.from)) refuse("products of parts of rows");
    for (int i = 0; i < op.n_products; ++i) {
      const auto& [matrix, to] = op.products[size(i)];
      if (matrix->kind() != WeightKind::int8 && matrix->kind() != WeightKind::int4) {
        fail("weights in int8 or int4 (--weights int8 rounds to them)",
             kernels::name_of(matrix->kind()));
      }
      if (!is_whole(to)) refuse("products into parts of rows");
      written_.insert(to.buffer);
      const std::vector<DeviceWeights::Columns> parts = from_.weights->of(*matrix);
      for (const DeviceWeights::Columns& part : parts) {
        append(device::product(rows_of(op.from.buffer),
                               {.kind = matrix->kind(),
                                .tiles = part.tiles,
                                .n_columns = part.n,
                                .k = matrix->k(),
                                .first_column = part.first,
                                .all_columns = parts.size() > 1 ? matrix->n_columns() : 0},
                               from_.rows->quantized(*from_.scratch, op.from.buffer), floats(to)));
      }
    }
  }

  void operator()(const op::PlaceHeads& op) {
    const Attention& attention = *op.attention;
    if (op.query.buffer >= 0) {
      prepare_heads(op.query, attention.query.bias, &attention.query_norm, attention);
    }
    if (op.key.buffer < 0) return;
    if (attention.values_are_keys()) {
      append(device::copy_rows(rows_of(op.value.buffer), nullptr, floats(op.key), columns(op.key),
                               floats(op.value), columns(op.value)));
    }
    add_bias(op.value, attention.value.bias);
    if (!attention.value_norm.empty()) norm_heads(op.value, attention.value_norm, attention);
    prepare_heads(op.key, attention.key.bias, &attention.key_norm, attention);
    const KvCache::LayerPlace& place = from_.cache->place(op.cache_layer);
    const std::vector<device::Range> cache = cache_of(op.cache_layer);
    for (std::size_t part = 0; part < cache.size(); ++part) {
      append(device::store_rows(rows_of(op.key.buffer), from_.store->part_shape(place.group, part),
                                {.places = from_.words->places(*from_.word_buffer, place.group),
                                 .keys = floats(op.key),
                                 .values = floats(op.value),
                                 .cache = cache[part]}));
    }
  }

  void operator()(const op::Attend& op) {
    const Attention& attention = *op.attention;
    if (!attention.sinks.empty()) refuse("attention sinks");
    if (attention.position_bias != nullptr) refuse("position biases");
    if (attention.side != CacheSide::text) refuse("an encoder");
    if (attention.reads_whole_block) refuse("attention to whole blocks");
    if (attention.head_dim > device::kMaxHeadDim) {
      fail(fmt::format("heads of at most {} elements (on a device)", device::kMaxHeadDim),
           fmt::format("{}", attention.head_dim));
    }
    const KvShape& cache_shape = from_.cache->shape(op.cache_layer);
    const std::vector<device::Range> cache = cache_of(op.cache_layer);
    const int group = from_.cache->place(op.cache_layer).group;
    const device::AttendShape shape = {.kv = cache_shape.kind,
                                       .n_heads = attention.n_heads,
                                       .n_kv_heads = cache_shape.n_heads,
                                       .head_dim = cache_shape.head_dim,
                                       .max_splits = from_.max_splits,
                                       .max_pages = from_.max_pages,
                                       .scale = attention.scale,
                                       .softcap = attention.softcap};
    device::AttendRanges ranges = {
        .queries = floats(op.query),
        .rows = from_.words->attend_rows(*from_.word_buffer, attention.window),
        .slots = from_.words->slots(*from_.word_buffer),
        .pages = from_.words->pages(*from_.word_buffer, group),
        .cache = {},
        .sums = from_.rows->sums(*from_.scratch),
        .states = from_.rows->states(*from_.scratch),
        .out = floats(op.to)};
    written_.insert(op.to.buffer);
    for (std::size_t part = 0; part < cache.size(); ++part) {
      device::AttendShape some = shape;
      if (cache.size() > 1) {
        some.n_heads /= static_cast<int>(cache.size());
        some.n_kv_heads /= static_cast<int>(cache.size());
        some.first_head = static_cast<int>(part) * some.n_heads;
        some.heads_of_row = shape.n_heads;
      }
      ranges.cache = cache[part];
      append(device::attend(rows_of(op.to.buffer), some, ranges));
    }
    append(device::merge_splits(rows_of(op.to.buffer), shape, ranges));
  }

  void operator()(const op::Prepare& op) { finish(op.rows); }

  void operator()(const op::Gate& op) {
    if (op.experts != nullptr) refuse("experts");
    const auto activation = [&] {
      switch (op.activation) {
        case Activation::silu:
          return device::GateActivation::silu;
        case Activation::gelu_tanh:
          return device::GateActivation::gelu_tanh;
        case Activation::gelu_erf:
          return device::GateActivation::gelu_erf;
        default:
          refuse("gates by other functions than SiLU and GELU");
      }
    }();
    if (op.up.buffer < 0) {  // in place
      if (!is_whole(op.gate) || op.to.buffer != op.gate.buffer) {
        refuse("activations of parts of rows, or of others");
      }
      add_bias(op.gate);
      append(device::activate(rows_of(op.to.buffer), activation, op.gate.width, floats(op.to)));
      return finish(op.to);
    }
    if (!is_whole(op.gate) || !is_whole(op.up) || op.to.buffer == op.gate.buffer ||
        op.to.buffer == op.up.buffer) {
      refuse("gates of parts of rows, or in place");
    }
    add_bias(op.gate);
    add_bias(op.up);
    append(device::gate(rows_of(op.to.buffer), activation, op.gate.width, floats(op.gate),
                        floats(op.up), floats(op.to)));
    finish(op.to);
  }

  void operator()(const op::Add& op) {
    if (op.gate.buffer >= 0) refuse("shared experts");
    if (op.from.buffer < 0) {
      Rows to = op.to;
      to.bias = op.from.bias;
      add_bias(to);
      return;
    }
    if (!is_whole(op.to) || !is_whole(op.from)) refuse("sums of parts of rows");
    add_bias(op.from);
    if (op.scale != 1) {
      append(
          device::scale_rows(rows_of(op.from.buffer), floats(op.from), columns(op.from), op.scale));
    }
    written_.insert(op.to.buffer);
    append(device::add_rows(rows_of(op.to.buffer), op.to.width, floats(op.to), floats(op.from)));
  }

  void operator()(const op::LeaveFeature& op) {
    for (std::size_t place = 0; place < feature_layers_.size(); ++place) {
      if (feature_layers_[place] != op.n_layers_done) continue;
      const device::Range to = from_.rows->feature(*from_.scratch, static_cast<int>(place));
      if (op.norm == nullptr || op.norm->empty()) {
        append(device::copy_rows(rows_of(op.from.buffer), nullptr, floats(op.from),
                                 columns(op.from), to, columns(op.from)));
        continue;
      }
      if (op.norm->n_groups != 1) refuse("features behind norms of groups");
      if (op.norm->removes_mean) {
        append(layer_norm(rows_of(op.from.buffer), false, op.from, *op.norm, to));
        continue;
      }
      append(device::rms_norm(
          rows_of(op.from.buffer), floats(op.from), weights(op.norm->weight),
          {.n = word(op.from.width), .max_rows = 0, .epsilon = op.norm->epsilon}, to));
    }
  }

  void operator()(const op::SoftCap& op) {
    if (!is_whole(op.rows)) refuse("a soft cap of parts of rows");
    append(device::cap_rows(rows_of(op.rows.buffer), op.rows.width, floats(op.rows), op.cap));
  }
  void operator()(const op::Spread&) { refuse("logits of a part of the vocabulary"); }
  void operator()(const op::Route&) { refuse("experts"); }
  void operator()(const op::MultiplyExperts&) { refuse("experts"); }
  void operator()(const op::SumExperts&) { refuse("experts"); }
  void operator()(const op::Recur&) { refuse("recurrent layers"); }
  void operator()(const op::PlaceLatents&) { refuse("latent attention"); }
  void operator()(const op::SplitHeads&) { refuse("latent attention"); }
  void operator()(const op::MultiplyHeads&) { refuse("latent attention"); }
  void operator()(const op::Gather&) { refuse("a model over several processes"); }
  void operator()(const op::GatherExperts&) { refuse("a model over several processes"); }

 private:
  // Refuses a part of the model that devices cannot run.
  [[noreturn]] void refuse(std::string_view part) const {
    fail(fmt::format("a model without {} (on a device)", part), "one that has it");
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw UsageError("load model", from_.device_name, expected, got);
  }
  void append(device::Step step) { steps_.push_back(std::move(step)); }

  bool is_whole(const Rows& rows) const {
    return rows.buffer == kLogits ||
           (rows.first == 0 && rows.width == from_.list->buffers[size(rows.buffer)].width);
  }
  device::Rows rows_of(int buffer) const {
    const bool asked = buffer == kLogits || from_.list->buffers[size(buffer)].asked;
    return asked ? from_.words->asked_rows(*from_.word_buffer)
                 : from_.words->rows(*from_.word_buffer);
  }
  device::Range floats(const Rows& rows) const {
    return from_.rows->floats(*from_.scratch, rows.buffer);
  }
  device::Range weights(const std::vector<float>& vector) const {
    return from_.weights->of(vector);
  }
  device::Columns columns(const Rows& rows) const {
    return {.stride = word(from_.list->buffers[size(rows.buffer)].width),
            .first = word(rows.first),
            .n = word(rows.width)};
  }
  std::vector<device::Range> cache_of(int cache_layer) const {
    const int group = from_.cache->place(cache_layer).group;
    const std::vector<int>& layers = from_.cache->groups()[size(group)].layers;
    const auto found = std::find(layers.begin(), layers.end(), cache_layer);
    return from_.store->layer(group, static_cast<std::size_t>(found - layers.begin()));
  }

  void add_bias(const Rows& rows, const std::vector<float>& bias) {
    if (bias.empty()) return;
    written_.insert(rows.buffer);
    append(device::add_bias(rows_of(rows.buffer), floats(rows), columns(rows), weights(bias)));
  }
  void add_bias(const Rows& rows) {
    if (rows.bias != nullptr) add_bias(rows, *rows.bias);
  }
  // n_pieces parts of the rows, n floats each; the weights are as wide as one part or as all of
  // them.
  void normalise(const Rows& rows, const Norm& norm, int n, int n_pieces) {
    const bool has_own = norm.weight.size() > size(n);
    append(device::norm_in_place(rows_of(rows.buffer), floats(rows), weights(norm.weight),
                                 {.stride = columns(rows).stride,
                                  .first = word(rows.first),
                                  .n = word(n),
                                  .n_pieces = word(n_pieces),
                                  .weight_step = has_own ? word(n) : 0U,
                                  .max_rows = 0,
                                  .epsilon = norm.epsilon}));
  }
  device::Step layer_norm(const device::Rows& rows, bool of_asked, const Rows& from,
                          const Norm& norm, const device::Range& to) const {
    const device::Range asked = from_.words->asked(*from_.word_buffer);
    device::Range bias;
    if (!norm.bias.empty()) bias = weights(norm.bias);
    return device::layer_norm(rows, of_asked ? &asked : nullptr, floats(from), weights(norm.weight),
                              norm.bias.empty() ? nullptr : &bias,
                              {.n = word(from.width), .max_rows = 0, .epsilon = norm.epsilon}, to);
  }
  void norm_heads(const Rows& heads, const Norm& norm, const Attention& attention) {
    if (norm.removes_mean || norm.n_groups != 1) refuse("norms of heads that remove the mean");
    normalise(heads, norm, attention.head_dim, heads.width / attention.head_dim);
  }
  // Bias, norm and RoPE of queries or keys. A norm over all heads together has added the bias
  // already.
  void prepare_heads(const Rows& heads, const std::vector<float>& bias, const Norm* norm,
                     const Attention& attention) {
    if (!attention.norms_all_heads) {
      add_bias(heads, bias);
      if (!norm->empty()) norm_heads(heads, *norm, attention);
    }
    if (attention.rope == kNoRope) return;
    const std::size_t half = from_.list->ropes[size(attention.rope)].frequencies.size();
    if (half == 0) return;
    append(device::apply_rope(rows_of(heads.buffer), floats(heads),
                              from_.words->cosines(*from_.word_buffer, attention.rope),
                              from_.words->sines(*from_.word_buffer, attention.rope),
                              {.n_heads = word(heads.width / attention.head_dim),
                               .head_dim = word(attention.head_dim),
                               .half = static_cast<std::uint32_t>(half),
                               .max_rows = 0}));
  }
  // Writes the forms of finished rows that products read.
  void finish(const Rows& rows) {
    written_.insert(rows.buffer);
    const Buffer& buffer = from_.list->buffers[size(rows.buffer)];
    if (!buffer.forms.int8) return;
    append(device::quantize_rows(rows_of(rows.buffer), floats(rows), buffer.width,
                                 from_.rows->quantized(*from_.scratch, rows.buffer)));
  }

  const DeviceRecording& from_;
  std::span<const int> feature_layers_;
  std::vector<device::Step> steps_;
  std::set<int> written_;  // buffers written so far
};

}  // namespace

std::vector<device::Step> DeviceRecording::steps_of(const std::vector<Step>& ops,
                                                    std::span<const int> feature_layers) const {
  Recorder recorder(*this, feature_layers);
  recorder.refuse_experts();
  for (const Step& step : ops) std::visit(recorder, step.op->what);
  recorder.find_best();
  return recorder.take();
}

}  // namespace outrider
