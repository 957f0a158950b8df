// SPDX-License-Identifier: Apache-2.0
// EAGLE heads that draft in one pass, or step by step in forms that drafts.json lacks. Their drafts
// are compared with an independent program (tests/golden/make/make_parallel_eagle_golden.py); unfit
// files are refused. The comparison must also notice heads with one fault each.
#include "speculate/drafters/heads/parallel_eagle_drafter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "model/heads/eagle_head.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/head_files.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/near.h"
#include "tests/support/proofs/masked_mutants.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Eagle3Form;
using test::expect_refused;

constexpr int kDrafted = 5;  // tokens of the golden program's drafts

const json& golden() {
  static const json all = json::parse(
      std::ifstream(fs::path(OUTRIDER_SOURCE_DIR) / "tests/golden/parallel_eagle.json"));
  return all;
}

// The golden program's forms, each with the mask under another key.
Eagle3Form form_of(const std::string& name) {
  if (name == "plain") {
    return {.config = R"({"ptd_token_id": 8, "eagle_aux_hidden_state_layer_ids": [0, 1, 2]})",
            .n_layers = 2,
            .mask_hidden = true};
  }
  if (name == "speculators") {
    return {
        .config = R"({"speculators_model_type": "peagle", "mask_token_id": 22,
                "eagle_aux_hidden_state_layer_ids": [0, 2, 1], "norm_before_residual": true,
                "norm_before_fc": true, "draft_vocab_size": 12,
                "speculators_config": {"algorithm": "peagle"}})",
        .prefix = "layers.0.",
        .speculators = true,
        .own_embedding = true,
        .input_norm = true,
        .n_layers = 3,
        .mask_hidden = true,
        .draft_vocabulary =
            golden().at("forms").at("speculators").at("vocabulary").get<std::vector<TokenId>>()};
  }
  return {.config = R"({"parallel_drafting": true, "fc_norm": true, "norm_output": true,
              "eagle_config": {"pard_token": 16, "eagle_aux_hidden_state_layer_ids": [0, 1]}})",
          .n_features = 2,
          .fc_norm = true,
          .mask_hidden = true};
}

class ParallelEagle : public test::HeadFiles {
 protected:
  void write(const Eagle3Form& form) const {
    test::write_eagle3_form(test::golden_block_shape(), form, head_path());
  }
  std::unique_ptr<FeatureHead> load() const {
    return load_eagle_head(head_path(), *target_, {.n_threads = 1});
  }

  // A stream after the text, known to the drafter.
  struct Begun {
    Begun(LanguageModel& target, Drafter& drafter, const std::vector<TokenId>& text,
          double temperature)
        : acceptance(make_multi_round(std::make_shared<ExactRule>())),
          decoder(target, &drafter, *acceptance,
                  std::make_shared<FixedShape>(widths_tree(std::vector<int>(kDrafted, 1)),
                                               Siblings::top_ranks),
                  nullptr),
          chance(1),
          stream(0, text, Transform({.temperature = temperature}, target.config().vocabulary_size),
                 chance) {
      stream.max_total = target.config().context_length;
      decoder.begin(stream);
    }
    ~Begun() { decoder.end(stream); }
    Begun(const Begun&) = delete;
    Begun& operator=(const Begun&) = delete;
    void round() {
      Stream* const streams[] = {&stream};
      decoder.round(streams, [](Stream&, const Committed&) { return false; });
    }
    std::unique_ptr<Acceptance> acceptance;
    Decoder decoder;
    CounterChance chance;
    Stream stream;
  };

  // Whether a distribution differs from that of these logits without the mask. The engine computes
  // in f32, the program in f64. Weights are of order one. Sums have at most 24 terms and pass three
  // layers each of target and head, times the draft's steps. So probabilities, below one, differ by
  // less than 1e-5.
  bool differs(const Distribution& dist, const json& logits, const std::vector<TokenId>& vocabulary,
               TokenId mask) const {
    constexpr double kTolerance = 1e-5;
    double total = 0;
    std::map<TokenId, double> weights;
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      if (vocabulary[i] == mask) continue;
      total += weights[vocabulary[i]] = std::exp(logits.at(i).get<double>());
    }
    for (TokenId token = 0; token < target_->config().vocabulary_size; ++token) {
      const double expected = weights.count(token) > 0 ? weights[token] / total : 0;
      if (!test::near(dist.prob(token), expected, kTolerance)) return true;
    }
    return false;
  }

  static std::vector<TokenId> text_of(std::size_t index, std::size_t place) {
    auto text = golden().at("texts").at(index).get<std::vector<TokenId>>();
    text.resize(golden().at("lengths").at(place).get<std::size_t>());
    return text;
  }

  // The first distribution of drafts, or of later questions about them, that differs from the
  // golden program's; empty if none.
  std::string first_other_distribution(const std::string& name, Drafter& drafter) {
    const json& form = golden().at("forms").at(name);
    const auto is_other = [&, mask = form.at("mask").get<TokenId>(),
                           vocabulary = form.at("vocabulary").get<std::vector<TokenId>>()](
                              const Distribution& dist, const json& logits) {
      return differs(dist, logits, vocabulary, mask);
    };
    for (std::size_t index = 0; index < golden().at("texts").size(); ++index) {
      for (std::size_t place = 0; place < golden().at("lengths").size(); ++place) {
        const json& rows = form.at("logits").at(index).at(place);
        const std::vector<TokenId> text = text_of(index, place);
        const std::string where = fmt::format("text {}, {} tokens", index, text.size());
        {
          Begun begun(*target_, drafter, text, 1);
          begun.round();
          const DraftTree& tree = begun.stream.tree;
          if (tree.n_drafted() != kDrafted) return where + ": another depth";
          for (int node = 0; node < kDrafted; ++node) {
            const Distribution& dist = tree.distribution(tree.node(node).draft_prob);
            if (is_other(dist, rows.at(static_cast<std::size_t>(node)))) {
              return fmt::format("{}, node {}", where, node);
            }
          }
        }
        // Drafts nothing, or less than is asked for.
        Begun begun(*target_, drafter, text, 1);
        DraftTree tree;
        tree.reset(text.back(), static_cast<std::int64_t>(text.size()));
        for (int node = 0; node < kDrafted; ++node) {
          Distribution dist;
          if (!drafter.draft_at(begun.stream.context(), tree, node, dist, nullptr)) {
            return fmt::format("{}: nothing behind node {}", where, node);
          }
          if (is_other(dist, rows.at(static_cast<std::size_t>(node)))) {
            return fmt::format("{}, asked behind node {}", where, node);
          }
          tree.add_child(node, 3, kPointMass, Replacement::with);
        }
      }
    }
    return {};
  }

  // The first round of greedy texts that differs from the golden program's; empty if none.
  std::string first_other_round(const std::string& name, Drafter& drafter) {
    for (std::size_t index = 0; index < golden().at("texts").size(); ++index) {
      const json& run = golden().at("forms").at(name).at("runs").at(index);
      const auto expected = run.at("tokens").get<std::vector<TokenId>>();
      auto text = golden().at("texts").at(index).get<std::vector<TokenId>>();
      text.resize(golden().at("prompt").get<std::size_t>());
      text.push_back(expected.front());
      Begun begun(*target_, drafter, text, 0);
      for (const json& round : run.at("rounds")) {
        const auto start = round.at("start").get<std::size_t>();
        const std::string where = fmt::format("text {}, round at {}", index, start);
        if (begun.stream.tokens.size() != start) return where + ": another length";
        begun.round();
        std::vector<TokenId> drafts;
        for (int node = 1; node < begun.stream.tree.n_nodes(); ++node) {
          drafts.push_back(begun.stream.tree.node(node).token);
        }
        if (drafts != round.at("drafts").get<std::vector<TokenId>>()) return where;
        if (begun.stream.tokens.size() - start - 1 != round.at("accepted")) return where;
      }
      text.insert(text.end(), expected.begin() + 1, expected.end());
      if (begun.stream.tokens != text) return fmt::format("text {}", index);
    }
    return {};
  }

  std::string first_fault(const std::string& name, Drafter& drafter) {
    const std::string dist = first_other_distribution(name, drafter);
    return dist.empty() ? first_other_round(name, drafter) : dist;
  }
};

TEST_F(ParallelEagle, DraftsAsTheGoldenProgram) {
  for (const auto& [name, form] : golden().at("forms").items()) {
    SCOPED_TRACE(name);
    write(form_of(name));
    EXPECT_EQ(first_fault(name, *make_of("eagle")), "");
  }
}

// Step by step: EAGLE-3.1, which is EAGLE-3 plus two norms, and a head of two layers.
TEST_F(ParallelEagle, HeadsWithoutAMaskGoStepByStep) {
  const std::map<std::string, Eagle3Form> forms = {
      {"eagle31",
       {.config = R"({"fc_norm": true, "norm_output": true,
            "eagle_aux_hidden_state_layer_ids": [0, 2, 1]})",
        .fc_norm = true}},
      {"layers",
       {.config = R"({"norm_before_residual": true,
            "eagle_aux_hidden_state_layer_ids": [1, 2, 0]})",
        .n_layers = 2}}};
  ASSERT_EQ(forms.size(), golden().at("chains").size());
  std::vector<TokenId> vocabulary(static_cast<std::size_t>(target_->config().vocabulary_size));
  std::iota(vocabulary.begin(), vocabulary.end(), 0);
  for (const auto& [name, form] : forms) {
    write(form);
    const auto drafter = make_of("eagle");
    for (std::size_t index = 0; index < golden().at("texts").size(); ++index) {
      for (std::size_t place = 0; place < golden().at("lengths").size(); ++place) {
        SCOPED_TRACE(fmt::format("{}, text {}, length {}", name, index, place));
        const json& chain = golden().at("chains").at(name).at(index).at(place);
        Begun begun(*target_, *drafter, text_of(index, place), 1);
        begun.round();
        const DraftTree& tree = begun.stream.tree;
        ASSERT_EQ(tree.n_drafted(), kDrafted);
        for (int node = 0; node < kDrafted; ++node) {
          const auto step = static_cast<std::size_t>(node);
          EXPECT_EQ(tree.node(node + 1).token, chain.at("drafts").at(step)) << node;
          EXPECT_FALSE(differs(tree.distribution(tree.node(node).draft_prob),
                               chain.at("logits").at(step), vocabulary, kNoToken))
              << node;
        }
      }
    }
  }
}

TEST_F(ParallelEagle, BrokenOnesAreNoticed) {
  using test::PassedHead;
  // Reports another token as the mask.
  class SaysTheMask final : public test::SaysTheMask<PassedHead> {
   public:
    SaysTheMask(std::unique_ptr<FeatureHead> inner, TokenId mask, TokenId told)
        : test::SaysTheMask<PassedHead>(std::move(inner), mask, told),
          told_{.token = told, .state = inner_->mask()->state} {}
    const Mask* mask() const override { return &told_; }

   private:
    Mask told_;
  };
  for (const std::string name : {"plain", "speculators"}) {
    SCOPED_TRACE(name);
    write(form_of(name));
    const auto fault = [&](std::unique_ptr<FeatureHead> head) {
      ParallelEagleDrafter drafter(std::move(head));
      return first_fault(name, drafter);
    };
    EXPECT_EQ(fault(std::make_unique<PassedHead>(load())), "");
    EXPECT_NE(fault(std::make_unique<SaysTheMask>(load(), load()->mask()->token, 1)), "");
    EXPECT_NE(fault(std::make_unique<test::ReadsTheRowBefore<PassedHead>>(load())), "");
    EXPECT_NE(fault(std::make_unique<test::KeepsMasks<PassedHead>>(load())), "");
  }
}

TEST_F(ParallelEagle, CountsOnePassADraft) {
  write(form_of("plain"));
  const auto drafter = make_of("eagle");
  auto text = golden().at("texts").at(0).get<std::vector<TokenId>>();
  Begun begun(*target_, *drafter, text, 0);
  for (std::int64_t n = 1; n <= 3; ++n) {
    begun.round();
    EXPECT_EQ(drafter->n_passes(), n);
  }
}

// One pass more if the queued rows and the masks do not fit into one.
TEST_F(ParallelEagle, RunsRowsBeforeThatLeaveNoRoom) {
  test::TinyShape shape = test::golden_shape();
  shape.context_length = 2 * kPrefillRows;
  test::write_hugging_face(test::make_tiny_model(shape), target_path());
  target_ = load_model(target_path(), {.n_threads = 1});
  shape.rope.theta = 500;
  test::write_eagle3_form(shape, form_of("plain"), head_path());
  std::vector<TokenId> text;
  while (text.size() < kPrefillRows + 1) text.push_back(static_cast<TokenId>(text.size() % 23));
  const auto drafter = make_of("eagle");
  Begun begun(*target_, *drafter, text, 1);
  begun.round();
  const DraftTree& drafted = begun.stream.tree;
  ASSERT_EQ(drafted.n_drafted(), kDrafted);
  EXPECT_EQ(drafter->n_passes(), 2);
  const auto other = make_of("eagle");
  Begun asked(*target_, *other, text, 1);
  DraftTree tree;
  tree.reset(text.back(), static_cast<std::int64_t>(text.size()));
  Distribution dist;
  ASSERT_TRUE(other->draft_at(asked.stream.context(), tree, 0, dist, nullptr));
  EXPECT_EQ(other->n_passes(), 1);
  EXPECT_EQ(dist.probs, drafted.distribution(drafted.node(0).draft_prob).probs);
}

TEST_F(ParallelEagle, RefusesWhatDoesNotFit) {
  const auto refused = [&](const std::string& patch, Eagle3Form form) {
    json config = json::parse(form.config);
    config.merge_patch(json::parse(patch));
    form.config = config.dump();
    write(form);
    return refusal_of("eagle");
  };
  const Eagle3Form plain = form_of("plain");
  EXPECT_EQ(refused("{}", plain), "");
  // Nothing, or not a token, as the mask.
  expect_refused(refused(R"({"ptd_token_id": null})", plain),
                 "a mask token in config.json (ptd_token_id, mask_token_id or pard_token) beside "
                 "the tensor mask_hidden, got none");
  expect_refused(refused(R"({"ptd_token_id": null, "parallel_drafting": true})", plain),
                 "ptd_token_id to be there (or mask_token_id or pard_token), got no such key");
  expect_refused(refused(R"({"mask_token_id": null})", form_of("speculators")),
                 "ptd_token_id to be there");
  expect_refused(refused(R"({"ptd_token_id": 23})", plain),
                 "ptd_token_id to be a token of the target, 0 to 22, got 23");
  expect_refused(refused(R"({"ptd_token_id": -1})", plain), "0 to 22, got -1");
  expect_refused(refused(R"({"pard_token": 9})", plain),
                 "pard_token to be 8, as another key names the mask token, got 9");
  EXPECT_EQ(refused(R"({"pard_token": 8, "parallel_drafting": true})", plain), "");
  expect_refused(refused(R"({"parallel_drafting": false})", plain),
                 "parallel_drafting to be true beside a mask token, got false");
  expect_refused(refused(R"({"parallel_drafting": 4})", plain), "parallel_drafting");
  // Tensors that are missing, unknown, or of another width.
  Eagle3Form form = plain;
  form.mask_hidden = false;
  expect_refused(refused("{}", form), "a tensor mask_hidden");
  expect_refused(refused(R"({"eagle_aux_hidden_state_layer_ids": [0, 1]})", plain), "fc.weight");
  form = plain;
  form.mask_width = 16;
  expect_refused(refused("{}", form), "mask_hidden of shape (1, 1, 24), got (1, 1, 16)");
  expect_refused(refused(R"({"num_hidden_layers": 3})", plain), "a tensor layers.2.");
  expect_refused(refused(R"({"num_hidden_layers": 1})", plain), "layers.1.");
  expect_refused(refused(R"({"hidden_size": 16})", plain), "the target's width of 8, got 16");
  form = form_of("normed");
  form.fc_norm = false;
  expect_refused(refused("{}", form), "fc_norm.0.weight");
  // Unknown keys; another kind of head; an EAGLE-1 head with a mask.
  expect_refused(refused(R"({"mask_gate": 0.5})", plain), "mask_gate");
  expect_refused(refused(R"({"eagle_config": {"depth_embedding": 4}})", plain),
                 "eagle_config.depth_embedding");
  expect_refused(refused(R"({"speculators_model_type": "medusa"})", form_of("speculators")),
                 "speculators_model_type to be eagle3 or peagle, got medusa");
  test::write_eagle_head(test::golden_shape(), head_path());
  json config = json::parse(std::ifstream(head_path() / "config.json"));
  config["ptd_token_id"] = 8;
  std::ofstream(head_path() / "config.json") << config.dump();
  expect_refused(refusal_of("eagle"),
                 "midlayer.hidden_norm.weight, as config.json speaks of P-EAGLE's mask token");
}

// The keys that SpecForge writes beside those of a Qwen3.
TEST_F(ParallelEagle, ReadsSpecForgesKeys) {
  Eagle3Form form = form_of("plain");
  json config = json::parse(form.config);
  config.update({{"architectures", {"PEagleDraftModel"}},
                 {"max_window_layers", 36},
                 {"sliding_window", nullptr},
                 {"use_sliding_window", false},
                 {"norm_before_residual", false}});
  form.config = config.dump();
  write(form);
  EXPECT_EQ(first_fault("plain", *make_of("eagle")), "");
}

}  // namespace
}  // namespace outrider
