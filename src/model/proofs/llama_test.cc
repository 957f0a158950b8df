// SPDX-License-Identifier: Apache-2.0
// The forward pass against a plain double-precision reference. (families_test.cc compares it with
// Hugging Face transformers.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "kernels/dispatch.h"
#include "model/decoder_model.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/reference_llama.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::Row;
using test::Rows;
using test::TinyModel;
using test::TinyShape;

std::vector<TokenId> some_tokens(int n, int vocabulary_size) {
  std::vector<TokenId> tokens;
  unsigned state = 11;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<TokenId>((state >> 8) % static_cast<unsigned>(vocabulary_size)));
  }
  return tokens;
}

Rows run_file(const std::filesystem::path& path, const std::vector<TokenId>& tokens,
              const LoadOptions& options = {}) {
  const auto model = load_model(path, options);
  const auto sequence = model->open({});
  return test::run_block(*model, *sequence, tokens);
}

double largest_difference(const Rows& rows, const std::vector<std::vector<double>>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const double difference = std::fabs(rows[i][j] - expected[i][j]);
      if (!(difference <= largest)) largest = difference;  // NaN is kept
    }
  }
  return largest;
}

struct NamedShape {
  const char* name;
  TinyShape shape;
};

std::vector<NamedShape> shapes() {
  std::vector<NamedShape> all(6);
  all[0] = {"plain", {}};
  all[1].name = "tied";
  all[1].shape.tied_head = true;
  all[2].name = "biases_and_odd_sizes";
  all[2].shape.attention_bias = true;
  all[2].shape.mlp_bias = true;
  all[2].shape.dim = 50;
  all[2].shape.n_heads = 3;
  all[2].shape.n_kv_heads = 3;
  all[2].shape.head_dim = 22;
  all[2].shape.hidden_dim = 77;
  all[3].name = "one_kv_head_linear_rope";
  all[3].shape.n_kv_heads = 1;
  all[3].shape.head_dim = 6;
  all[3].shape.rope.scaling = RopeConfig::Scaling::linear;
  all[3].shape.rope.factor = 3;
  all[4].name = "llama3_rope";
  all[4].shape.rope.scaling = RopeConfig::Scaling::llama3;
  all[4].shape.rope.factor = 8;
  all[4].shape.rope.theta = 500000;
  all[4].shape.rope.original_context = 64;
  all[5].name = "one_layer_one_head";
  all[5].shape.n_layers = 1;
  all[5].shape.n_heads = 1;
  all[5].shape.n_kv_heads = 1;
  all[5].shape.head_dim = 2;
  return all;
}

class AgainstReference : public ::testing::TestWithParam<NamedShape> {};

// The rounding error of these logits is measured: the reference in float errs by d = max |float -
// double|, adding in an order as bad as any of ours. Our roundings have the same number and size,
// but other values: 8 d allows for that. A wrong factor anywhere makes errors as large as the
// logits, thousands of d.
TEST_P(AgainstReference, F32FromBothFileForms) {
  const test::TemporaryDirectory directory;
  const TinyModel tiny = test::make_tiny_model(GetParam().shape);
  test::write_hugging_face(tiny, directory.path());
  test::write_gguf(tiny, directory.path() / "tiny.gguf");
  const std::vector<TokenId> tokens = some_tokens(90, tiny.shape.vocabulary_size);

  const auto expected = test::reference_logits<double>(tiny, tokens);
  const double rounding = largest_difference(test::reference_logits<float>(tiny, tokens), expected);
  ASSERT_GT(rounding, 0);
  ASSERT_LT(rounding, 1e-3);
  const Rows rows = run_file(directory.path(), tokens);
  ASSERT_EQ(rows.size(), expected.size());
  EXPECT_LE(largest_difference(rows, expected), 8 * rounding);

  const Rows from_gguf = run_file(directory.path() / "tiny.gguf", tokens);
  if (GetParam().shape.rope.scaling == RopeConfig::Scaling::llama3) {
    // GGUF stores the frequencies' divisors in f32: an angle errs by 2^-24 of itself, at most 90
    // radians here, and a logit by a small multiple of that.
    EXPECT_LE(largest_difference(from_gguf, expected), 8 * rounding + 16 * 90 * 0x1p-24);
  } else {
    test::expect_same_bits(rows, 0, from_gguf);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AgainstReference, ::testing::ValuesIn(shapes()),
                         [](const auto& info) { return std::string(info.param.name); });

// Compares with the double reference on the model after a weight format has rounded it. int8 and
// int4 also round inputs to 8 bits in groups of 32: noise of (max|x| / 127) / sqrt(12), with max|x|
// about 2 deviations: 0.5% of each product. Each of two layers has four products in a row, then the
// head: 3 * 0.5%, doubled for the nonlinear steps.
TEST(DecoderModel, QuantisedGgufFilesComeNearTheirOwnValues) {
  TinyShape shape;
  shape.dim = 256;  // a block of q6_k
  shape.head_dim = 32;
  shape.n_heads = 8;
  shape.hidden_dim = 256;
  for (const auto& [matrices, head] : {std::pair{ElementType::q8_0, ElementType::q8_0},
                                       std::pair{ElementType::q4_0, ElementType::q6_k},
                                       std::pair{ElementType::q4_1, ElementType::bf16},
                                       std::pair{ElementType::q6_k, ElementType::f16}}) {
    SCOPED_TRACE(fmt::format("{} {}", name_of(matrices), name_of(head)));
    const test::TemporaryDirectory directory;
    const auto file = directory.path() / "tiny.gguf";
    TinyModel tiny = test::make_tiny_model(shape);
    test::write_gguf(tiny, file, {matrices, head});

    // The file's values, read back: rounded as stored, and still interleaved there. So only the
    // values are rounded here.
    for (auto& tensor : tiny.tensors) {
      if (tensor.shape.size() < 2) continue;
      const ElementType type = tensor.name == "lm_head.weight" ? head : matrices;
      const auto bytes = test::encode_values(tensor.values, tensor.shape[1], type);
      const TensorView view{tensor.name, type, tensor.shape, bytes};
      decode_rows(view, 0, tensor.shape[0], tensor.values);
    }
    const std::vector<TokenId> tokens = some_tokens(16, shape.vocabulary_size);
    const auto expected = test::reference_logits<double>(tiny, tokens);
    const Rows rows = run_file(file, tokens);
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t j = 0; j < rows[i].size(); ++j) {
        error += (rows[i][j] - expected[i][j]) * (rows[i][j] - expected[i][j]);
        size += expected[i][j] * expected[i][j];
      }
    }
    EXPECT_LT(std::sqrt(error / size), 0.03);
    EXPECT_GT(std::sqrt(error / size), 1e-4);  // it did run with 8-bit inputs

    // As f32 the file's values are exact, and so are the logits except for rounding.
    LoadOptions exact;
    exact.weights = WeightKind::f32;
    const double rounding =
        largest_difference(test::reference_logits<float>(tiny, tokens), expected);
    EXPECT_LE(largest_difference(run_file(file, tokens, exact), expected), 8 * rounding);
  }
}

// In a quantised model, tensors stored as bf16 run as f32: the bits are those of a file that holds
// these numbers as f32.
TEST(DecoderModel, NothingRunsAsBf16InAQuantisedModel) {
  const test::TemporaryDirectory directory;
  TinyModel tiny = test::make_tiny_model({});
  test::write_gguf(tiny, directory.path() / "bf16.gguf", {ElementType::q8_0, ElementType::bf16});
  auto& head = tiny.at("lm_head.weight");
  const auto bytes = test::encode_values(head.values, head.shape[1], ElementType::bf16);
  decode_rows({head.name, ElementType::bf16, head.shape, bytes}, 0, head.shape[0], head.values);
  test::write_gguf(tiny, directory.path() / "f32.gguf", {ElementType::q8_0, ElementType::f32});
  const std::vector<TokenId> tokens = some_tokens(20, 300);
  test::expect_same_bits(run_file(directory.path() / "bf16.gguf", tokens), 0,
                         run_file(directory.path() / "f32.gguf", tokens));
}

// Stored as bf16 or f16 and loaded as f32: equals the widened numbers stored as f32. The embedding
// is read as stored, whatever the matrices' format.
int n_attended_by_pairs = 0;

// Attention uses bf16 products only for bf16 weights with bf16 keys. A quantised model has the same
// bits on every table, and a float cache is read as floats.
TEST(DecoderModel, AttendsByProductsOfBf16WithBf16WeightsAndKeysAlone) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  kernels::KernelTable table = *kernels::find_table("scalar");
  table.attend_bf16_pairs = [](const kernels::AttendArgs& args) {
    ++n_attended_by_pairs;
    kernels::find_table("scalar")->attend[static_cast<int>(kernels::KvKind::bf16)](args);
  };
  for (const WeightKind weights :
       {WeightKind::f32, WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
    for (const kernels::KvKind kv :
         {kernels::KvKind::f32, kernels::KvKind::bf16, kernels::KvKind::int8}) {
      LoadOptions options;
      options.table = &table;
      options.weights = weights;
      options.kv = kv;
      options.n_threads = 1;
      const auto model = load_model(directory.path(), options);
      const auto sequence = model->open({});
      n_attended_by_pairs = 0;
      test::run_block(*model, *sequence, std::vector<TokenId>{1, 2, 3});
      const bool pairs = weights == WeightKind::bf16 && kv == kernels::KvKind::bf16;
      EXPECT_EQ(n_attended_by_pairs > 0, pairs)
          << static_cast<int>(weights) << " " << static_cast<int>(kv);
    }
  }
}

TEST(DecoderModel, StoredTypesWiden) {
  for (const ElementType type : {ElementType::bf16, ElementType::f16}) {
    const test::TemporaryDirectory directory;
    TinyModel tiny = test::make_tiny_model({});
    test::write_hugging_face(tiny, directory.path() / "narrow", type);
    for (auto& tensor : tiny.tensors) {
      const auto bytes = test::encode_values(tensor.values, tensor.shape.back(), type);
      const TensorView view{tensor.name, type, tensor.shape, bytes};
      const std::int64_t n_rows = view.n_elements() / tensor.shape.back();
      decode_rows(view, 0, n_rows, tensor.values);
    }
    test::write_hugging_face(tiny, directory.path() / "wide");
    const std::vector<TokenId> tokens = some_tokens(20, 300);
    for (const WeightKind kind :
         {WeightKind::f32, WeightKind::bf16, WeightKind::int8, WeightKind::int4}) {
      LoadOptions options;
      options.weights = kind;
      test::expect_same_bits(run_file(directory.path() / "wide", tokens, options), 0,
                             run_file(directory.path() / "narrow", tokens, options));
    }
  }
}

// Errors leave everything unchanged: the next pass gives the same bits.
TEST(DecoderModel, RefusesWhatItCannotRun) {
  const test::TemporaryDirectory directory;
  TinyShape shape;
  shape.context_length = 40;
  const TinyModel tiny = test::make_tiny_model(shape);
  test::write_hugging_face(tiny, directory.path());
  const auto model = load_model(directory.path());
  const auto stranger = load_model(directory.path());
  const std::vector<TokenId> tokens = some_tokens(12, 300);

  const auto sequence = model->open({});
  test::run_and_keep(*model, *sequence, tokens);
  test::run_block(*model, *sequence, std::vector<TokenId>{5, 6});
  const auto foreign = stranger->open({});
  const auto fresh = model->open({});
  ForwardOutput output;
  const auto refused = [&](std::vector<TokenBlock> blocks, const RowSet& rows,
                           const std::string& part) {
    try {
      model->forward(blocks, {rows}, output);
      ADD_FAILURE() << "ran: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(sequence->n_kept(), 12);
    EXPECT_EQ(sequence->n_pending(), 2);
    EXPECT_EQ(fresh->n_pending(), 0);
  };
  const std::vector<TokenId> good = {1, 2, 3};
  const std::vector<TokenId> negative = {1, -1};
  const std::vector<TokenId> too_large = {1, 300};
  const std::vector<TokenId> too_long(27, 1);
  const std::vector<int> two_parents = {-1, 0};
  const std::vector<int> forward_parent = {-1, 3, 0};  // its own index: node 3
  const std::vector<int> low_parent = {-2, -1, -1};
  const RowSet all;
  refused({{nullptr, good, {}}}, all, "sequence");
  refused({{foreign.get(), good, {}}}, all, "another model's");
  refused({{sequence.get(), {}, {}}}, all, "at least one token");
  refused({{sequence.get(), good, two_parents}}, all, "3 parents");
  refused({{sequence.get(), good, forward_parent}}, all, "parent of node 3");
  refused({{sequence.get(), good, low_parent}}, all, "-2");
  refused({{fresh.get(), good, {}}, {sequence.get(), negative, {}}}, all, "-1");
  refused({{fresh.get(), good, {}}, {sequence.get(), too_large, {}}}, all, "300");
  refused({{sequence.get(), too_long, {}}}, all, "context length 40");
  refused({{fresh.get(), good, {}}, {fresh.get(), good, {}}}, all, "sequence of its own");
  const int descending[] = {1, 0};
  const int outside[] = {3};
  refused({{fresh.get(), good, {}}}, {RowSet::Kind::listed, descending}, "ascending");
  refused({{fresh.get(), good, {}}}, {RowSet::Kind::listed, outside}, "between 0 and 2");
  const std::vector<TokenId> encoder = {1};
  EXPECT_THROW(model->open({encoder}), Error);

  EXPECT_THROW(sequence->keep(std::vector<int>{2}), Error);
  EXPECT_THROW(sequence->keep(std::vector<int>{1}), Error);
  EXPECT_THROW(sequence->keep(std::vector<int>{0, 0}), Error);
  EXPECT_THROW(sequence->keep(std::vector<int>{-1}), Error);
  EXPECT_THROW(sequence->truncate(13), Error);
  EXPECT_THROW(sequence->truncate(-1), Error);
  EXPECT_EQ(sequence->n_pending(), 2);

  std::vector<TokenId> whole = tokens;
  whole.insert(whole.end(), {5, 6, 1, 2, 3});
  const Rows expected = run_file(directory.path(), whole);
  test::expect_same_bits(expected, 14, test::run_block(*model, *sequence, good));
  // Exactly to the end of the context is allowed.
  const std::vector<TokenId> rest(23, 1);
  EXPECT_EQ(test::run_block(*model, *sequence, rest).size(), 23u);
  EXPECT_TRUE(test::run_block(*model, *fresh, std::vector<TokenId>(40, 2)).size() == 40u);
  model->forward({}, {}, output);
  EXPECT_EQ(output.logits.n_rows(), 0);
}

TEST(DecoderModel, ReportsProgressUpToTheEnd) {
  const test::TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  std::vector<double> shares;
  LoadOptions options;
  options.progress = [&](double share) { shares.push_back(share); };
  load_model(directory.path(), options);
  ASSERT_GT(shares.size(), 10u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GT(shares.front(), 0);
  EXPECT_EQ(shares.back(), 1);
}

// The random pair for demos: on text of the target, its drafter is accepted often enough to be
// useful, and rejected often enough to show it.
TEST(TinyPair, AcceptanceIsBetweenTheExtremes) {
  const test::TemporaryDirectory directory;
  test::write_tiny_pair(directory.path());
  const auto target = load_model(directory.path() / "target");
  const auto draft = load_model(directory.path() / "draft");
  double overlap = 0;
  int same = 0;
  int n = 0;
  for (const TokenId start : {70, 100, 300}) {
    const auto target_sequence = target->open({});
    const auto draft_sequence = draft->open({});
    TokenId token = start;
    for (int i = 0; i < 100; ++i, ++n) {
      const Row p = test::run_and_keep(*target, *target_sequence, {&token, 1})[0];
      const Row q = test::run_and_keep(*draft, *draft_sequence, {&token, 1})[0];
      const auto probabilities = [](const Row& logits) {
        const float largest = *std::max_element(logits.begin(), logits.end());
        std::vector<double> result;
        double sum = 0;
        for (const float logit : logits) {
          result.push_back(std::exp(logit - largest));
          sum += result.back();
        }
        for (double& value : result) value /= sum;
        return result;
      };
      const std::vector<double> target_prob = probabilities(p);
      const std::vector<double> draft_prob = probabilities(q);
      for (std::size_t j = 0; j < p.size(); ++j) overlap += std::min(target_prob[j], draft_prob[j]);
      token = static_cast<TokenId>(std::max_element(p.begin(), p.end()) - p.begin());
      same += token == std::max_element(q.begin(), q.end()) - q.begin();
    }
  }
  RecordProperty("overlap", fmt::format("{}", overlap / n));
  RecordProperty("greedy_agreement", fmt::format("{}", static_cast<double>(same) / n));
  EXPECT_GT(overlap / n, 0.3);
  EXPECT_LT(overlap / n, 0.9);
  EXPECT_GT(same, 0.3 * n);
  EXPECT_LT(same, 0.9 * n);
}

}  // namespace
}  // namespace outrider
