// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models/reference_llama.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <string>

namespace outrider::test {
namespace {

template <typename Real>
using Vector = std::vector<Real>;

template <typename Real>
Vector<Real> linear(const TinyModel& model, const std::string& name, const Vector<Real>& x) {
  const TinyTensor& weight = *model.find(name + ".weight");
  const TinyTensor* bias = model.find(name + ".bias");
  Vector<Real> y;
  for (std::size_t row = 0; row < static_cast<std::size_t>(weight.shape[0]); ++row) {
    Real sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += static_cast<Real>(weight.values[row * x.size() + i]) * x[i];
    }
    if (bias != nullptr) sum += static_cast<Real>(bias->values[row]);
    y.push_back(sum);
  }
  return y;
}

template <typename Real>
Vector<Real> norm(const TinyModel& model, const std::string& name, const Vector<Real>& x) {
  Real squares = 0;
  for (const Real value : x) squares += value * value;
  const Real scale = 1 / std::sqrt(squares / static_cast<Real>(x.size()) + static_cast<Real>(1e-5));
  const TinyTensor& weight = *model.find(name + ".weight");
  Vector<Real> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back(x[i] * scale * static_cast<Real>(weight.values[i]));
  }
  return y;
}

// Radians per token for pair i, by the scaling that Llama 3.1 describes.
double frequency(const TinyShape& shape, int i) {
  const RopeConfig& rope = shape.rope;
  const double plain = std::pow(rope.theta, -2.0 * i / shape.head_dim);
  if (rope.scaling == RopeConfig::Scaling::none) return plain;
  if (rope.scaling == RopeConfig::Scaling::linear) return plain / rope.factor;
  const double wavelength = 2 * std::numbers::pi / plain;
  if (wavelength < rope.original_context / rope.high_frequency_factor) return plain;
  if (wavelength > rope.original_context / rope.low_frequency_factor) return plain / rope.factor;
  const double smooth = (rope.original_context / wavelength - rope.low_frequency_factor) /
                        (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - smooth) * plain / rope.factor + smooth * plain;
}

template <typename Real>
void rotate(const TinyShape& shape, int position, Vector<Real>& heads) {
  const int half = shape.head_dim / 2;
  for (std::size_t head = 0; head < heads.size();
       head += static_cast<std::size_t>(shape.head_dim)) {
    for (int i = 0; i < half; ++i) {
      const double angle = position * frequency(shape, i);
      const auto cosine = static_cast<Real>(std::cos(angle));
      const auto sine = static_cast<Real>(std::sin(angle));
      Real& first = heads[head + static_cast<std::size_t>(i)];
      Real& second = heads[head + static_cast<std::size_t>(i + half)];
      const Real rotated = first * cosine - second * sine;
      second = second * cosine + first * sine;
      first = rotated;
    }
  }
}

template <typename Real>
Vector<Real> attend(const TinyShape& shape, const Vector<Real>& query,
                    const Vector<Vector<Real>>& keys, const Vector<Vector<Real>>& values) {
  const auto width = static_cast<std::size_t>(shape.head_dim);
  const auto group = static_cast<std::size_t>(shape.n_heads / shape.n_kv_heads);
  Vector<Real> out(query.size());
  for (std::size_t head = 0; head < static_cast<std::size_t>(shape.n_heads); ++head) {
    const std::size_t kv = head / group * width;
    Vector<Real> scores;
    for (const Vector<Real>& key : keys) {
      Real dot = 0;
      for (std::size_t i = 0; i < width; ++i) dot += query[head * width + i] * key[kv + i];
      scores.push_back(dot / std::sqrt(static_cast<Real>(width)));
    }
    Real largest = scores[0];
    for (const Real score : scores) largest = std::max(largest, score);
    Real total = 0;
    for (Real& score : scores) total += score = std::exp(score - largest);
    for (std::size_t key = 0; key < scores.size(); ++key) {
      for (std::size_t i = 0; i < width; ++i) {
        out[head * width + i] += scores[key] / total * values[key][kv + i];
      }
    }
  }
  return out;
}

}  // namespace

template <typename Real>
std::vector<std::vector<Real>> reference_logits(const TinyModel& model,
                                                const std::vector<TokenId>& tokens) {
  const TinyShape& shape = model.shape;
  const auto dim = static_cast<std::size_t>(shape.dim);
  const auto n_layers = static_cast<std::size_t>(shape.n_layers);
  const TinyTensor& embedding = *model.find("model.embed_tokens.weight");
  Vector<Vector<Vector<Real>>> keys(n_layers);
  Vector<Vector<Vector<Real>>> values(n_layers);
  Vector<Vector<Real>> logits;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    const auto first =
        embedding.values.begin() + static_cast<std::ptrdiff_t>(dim) * tokens[position];
    Vector<Real> x(first, first + static_cast<std::ptrdiff_t>(dim));
    const auto add = [&](const Vector<Real>& change) {
      for (std::size_t i = 0; i < dim; ++i) x[i] += change[i];
    };
    for (std::size_t layer = 0; layer < n_layers; ++layer) {
      const std::string name = fmt::format("model.layers.{}.", layer);
      Vector<Real> normed = norm(model, name + "input_layernorm", x);
      Vector<Real> query = linear(model, name + "self_attn.q_proj", normed);
      Vector<Real> key = linear(model, name + "self_attn.k_proj", normed);
      rotate(shape, static_cast<int>(position), query);
      rotate(shape, static_cast<int>(position), key);
      keys[layer].push_back(key);
      values[layer].push_back(linear(model, name + "self_attn.v_proj", normed));
      add(linear(model, name + "self_attn.o_proj",
                 attend(shape, query, keys[layer], values[layer])));

      normed = norm(model, name + "post_attention_layernorm", x);
      Vector<Real> gate = linear(model, name + "mlp.gate_proj", normed);
      const Vector<Real> up = linear(model, name + "mlp.up_proj", normed);
      for (std::size_t i = 0; i < gate.size(); ++i) {
        gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      }
      add(linear(model, name + "mlp.down_proj", gate));
    }
    logits.push_back(linear(model, shape.tied_head ? "model.embed_tokens" : "lm_head",
                            norm(model, "model.norm", x)));
  }
  return logits;
}

template std::vector<std::vector<float>> reference_logits<float>(const TinyModel&,
                                                                 const std::vector<TokenId>&);
template std::vector<std::vector<double>> reference_logits<double>(const TinyModel&,
                                                                   const std::vector<TokenId>&);

}  // namespace outrider::test
