// SPDX-License-Identifier: Apache-2.0
// The models that ship with the project, models/: they load, have the promised sizes, and every
// drafter among them drafts without changing the text.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/inspect.h"
#include "outrider/model.h"

namespace outrider {
namespace {

std::filesystem::path family() { return std::filesystem::path(OUTRIDER_SOURCE_DIR) / "models"; }

std::string in_family(const char* kind, const char* model) {
  return std::string(kind) + ":" + (family() / model).string();
}

constexpr const char* kPrompts[] = {
    "The old gentleman looked at her for a moment, and then",
    "It was a dark evening in November, when the coach",
    "“My dear,” said his mother,",
};
constexpr int kTokens = 64;

std::vector<GenerateResult> generate(const std::shared_ptr<const Model>& target,
                                     const SpeculationOptions& speculation) {
  Generator generator(target, speculation);
  std::vector<GenerateResult> texts;
  for (const char* prompt : kPrompts) {
    texts.push_back(generator.generate(
        prompt, {.max_tokens = kTokens, .ignore_eos = true, .keep_logits = true}));
  }
  return texts;
}

TEST(Family, TakesAtMostTwentyFourMegabytes) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(family())) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 0U);
  EXPECT_LE(bytes, 24'000'000U);
}

// tests/golden/make/make_family_golden.py wrote the results of transformers for them.
TEST(Family, SaysInF32WhatTransformersSays) {
  std::ifstream file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/golden/family.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const auto& [name, texts] : golden.at("models").items()) {
    const auto model = Model::load(family() / name, {.weights = "f32", .threads = 1});
    Generator generator(model);
    for (const nlohmann::json& text : texts) {
      const auto prompt = text.at("prompt").get<std::string>();
      SCOPED_TRACE(name + ": " + prompt);
      const auto ids = text.at("ids").get<std::vector<TokenId>>();
      EXPECT_EQ(model->tokenizer().encode(prompt, true),
                text.at("prompt_ids").get<std::vector<TokenId>>());
      EXPECT_EQ(
          generator
              .generate(prompt, {.max_tokens = static_cast<int>(ids.size()), .ignore_eos = true})
              .ids,
          ids);
    }
  }
}

struct FamilyDrafter {
  const char* kind;
  const char* model;
  const char* tree;
  double tau;  // measured on these prompts with the table avx512
};
// The share of a drafter's measured gain (tau - 1) that any table must reach. Other tables round
// bf16 differently and write other texts, for which acceptance differs. A drafter with another
// one's files gains nothing.
constexpr double kMinShare = 0.7;

TEST(Family, DraftersChangeNoIdAndNoLogit) {
  const auto target = Model::load(family() / "target", {.threads = 1});
  const std::vector<GenerateResult> plain = generate(target, {});
  for (const auto& [kind, model, tree, tau] : {
           FamilyDrafter{"model", "drafter", "chain:length=4", 2.87},
           FamilyDrafter{"model", "drafter", "dynamic:total=12,depth=5,topk=4", 3.10},
           FamilyDrafter{"eagle", "eagle", "chain:length=4", 2.63},
           FamilyDrafter{"eagle", "eagle", "dynamic:total=12,depth=5,topk=4", 3.15},
           // Also with a copy of the target's output matrix in fewer bits.
           FamilyDrafter{"eagle", "eagle,weights=int8", "chain:length=4", 2.60},
           FamilyDrafter{"medusa", "medusa", "chain:length=2", 1.26},
           FamilyDrafter{"medusa", "medusa,weights=int8", "chain:length=2", 1.26},
           FamilyDrafter{"mtp", "mtp", "chain:length=1", 1.70},
       }) {
    const std::vector<GenerateResult> drafted =
        generate(target, {.drafter = in_family(kind, model), .tree = tree});
    std::int64_t emitted = 0;
    std::int64_t passes = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(drafted[i].ids, plain[i].ids) << model << " " << tree;
      EXPECT_EQ(drafted[i].logits, plain[i].logits) << model << " " << tree;
      emitted += drafted[i].statistics.emitted;
      passes += drafted[i].statistics.target_passes;
    }
    const double reached = static_cast<double>(emitted) / static_cast<double>(passes);
    EXPECT_GE(reached, 1 + kMinShare * (tau - 1)) << model << " " << tree;
  }
}

TEST(Family, EveryModelCanBeInspected) {
  for (const char* model : {"target", "drafter", "eagle", "medusa", "mtp"}) {
    const FileSummary summary = inspect_file(family() / model);
    EXPECT_FALSE(summary.metadata.empty()) << model;
    EXPECT_FALSE(summary.tensors.empty()) << model;
  }
}

// Half of the tokens on the novels that served for the measurement.
TEST(Family, RouterLeavesSomeTokensToTheTarget) {
  const auto target = Model::load(family() / "target", {.threads = 1});
  Generator generator(target,
                      {.drafter = in_family("model", "drafter"),
                       .rule = "router:path=" + (family() / "router" / "router.json").string()});
  const GenerateResult text = generator.generate(
      kPrompts[0], {.max_tokens = 128, .sampling = {.temperature = 1}, .ignore_eos = true});
  EXPECT_GT(text.statistics.deferral_rate, 0.2);
  EXPECT_LT(text.statistics.deferral_rate, 0.8);
  EXPECT_GT(text.statistics.rule_kl, 0);
}

}  // namespace
}  // namespace outrider
