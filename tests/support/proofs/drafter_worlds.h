// SPDX-License-Identifier: Apache-2.0
// The environments in which the contract suite runs a drafter: a target, the materials that the
// drafter is made from, and a prompt for which every kind of drafter proposes something.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WORLDS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WORLDS_H_

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/datastore_writer.h"
#include "model/load_model.h"
#include "outrider/batch.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "outrider/sampling.h"
#include "outrider/tokenizer.h"
#include "speculate/drafters/own_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "tests/support/models/table_model.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/own_drafters.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/same_vocabulary.h"
#include "tokenizer/translate_vocabulary.h"

namespace outrider::test {

// A model in files that also gives the logits after a prefix. For an encoder-decoder, its encoder
// has read these tokens.
class StoredModel final : public PrefixModel {
 public:
  explicit StoredModel(const std::filesystem::path& path, std::vector<TokenId> encoder_tokens = {})
      : model_(load_model(path, {.n_threads = 1})), encoder_tokens_(std::move(encoder_tokens)) {}

  const ModelConfig& config() const override { return model_->config(); }
  Footprint footprint() const override { return model_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return model_->open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    model_->forward(blocks, request, output);
  }
  void embed(std::span<const TokenId> tokens, std::span<float> out) override {
    model_->embed(tokens, out);
  }
  void project(std::span<const float> features, ForwardOutput& output) override {
    model_->project(features, output);
  }
  const CpuPass* key_writer() const override { return model_->key_writer(); }
  const std::vector<float>& logits(const std::vector<TokenId>& prefix) override {
    auto [at, is_new] = rows_.try_emplace(prefix);
    if (is_new) {
      const auto sequence = model_->open({.encoder_tokens = encoder_tokens_});
      const TokenBlock block{.sequence = sequence.get(), .tokens = prefix, .parents = {}};
      ForwardOutput output;
      model_->forward({&block, 1},
                      {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}}, output);
      at->second.assign(output.logits_row(0).begin(), output.logits_row(0).end());
    }
    return at->second;
  }

 private:
  std::unique_ptr<LanguageModel> model_;
  std::vector<TokenId> encoder_tokens_;
  std::map<std::vector<TokenId>, std::vector<float>> rows_;
};

// The files in specs: a random target and its drafter (tiny_pair.h), heads on that target, modules
// in the target's directory, and a text.
class DrafterFiles {
 public:
  static const DrafterFiles& get() {
    static const DrafterFiles files;
    return files;
  }
  std::filesystem::path target() const { return directory_.path() / "target"; }
  // Four characters that are in the vocabulary and never merged. Texts of only these characters
  // contain repetitions, so drafters that search for repetitions find some; other texts of a random
  // model have none.
  static constexpr std::string_view kFewCharacters = "#%&@";
  static constexpr const char* kFewPrompt = "A small test #%#&@#%#&";
  // The sampling parameters with a bias that allows no other tokens.
  SamplingParams few_characters(SamplingParams sampling) const {
    for (const char character : kFewCharacters) {
      const std::vector<TokenId> tokens = tokenizer_->encode(std::string(1, character), false);
      sampling.logit_bias.emplace_back(tokens.front(), 50.0F);
    }
    return sampling;
  }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }

  // Files that a spec names are written when it is asked for: a process has one test of many.
  std::string spec(const DrafterCase& drafter) const {
    const std::lock_guard lock(mutex_);
    fmt::dynamic_format_arg_store<fmt::format_context> paths;
    for (Part& part : parts_) {
      const auto place = std::string_view(drafter.spec).find("{" + part.name + "}");
      if (place != std::string_view::npos && part.write) std::exchange(part.write, {})();
      paths.push_back(fmt::arg(part.name.c_str(), (directory_.path() / part.file).string()));
    }
    return fmt::vformat(drafter.spec, paths);
  }
  // The target's vocabulary, and for the store every world's.
  VocabularyId vocabulary() const { return vocabulary_id(*tokenizer_); }

 private:
  struct Part {
    std::string name;             // in specs
    std::string file;             // in the directory
    std::function<void()> write;  // empty: written
  };

  DrafterFiles() {
    write_tiny_pair(directory_.path());
    const TinyShape shape = make_tiny_pair().target.shape;
    write_mtp_modules(shape, 3, target());
    tokenizer_ = Tokenizer::load(target());
    const auto at = [this](const char* file) { return directory_.path() / file; };
    std::vector<TokenId> two_thirds;
    for (TokenId token = 0; token < shape.vocabulary_size; ++token) {
      if (token % 3 != 1) two_thirds.push_back(token);
    }
    parts_ = {
        {"draft", "draft", {}},
        {"other", "target", {}},  // an ordinary model, since nothing is measured here
        {"foreign", "foreign", [this] { write_foreign_drafter(); }},
        {"eagle", "eagle", [=] { write_eagle_head(shape, at("eagle")); }},
        {"eagle3", "eagle3", [=] { write_eagle3_head(shape, two_thirds, at("eagle3")); }},
        {"peagle", "peagle",
         [=] {
           write_eagle3_form(shape,
                             {.config = R"({"ptd_token_id": 2, "feature_layers": [0, 1, 2]})",
                              .n_layers = 2,
                              .mask_hidden = true,
                              .draft_vocabulary = two_thirds},
                             at("peagle"));
         }},
        {"medusa", "medusa",
         [=] { write_medusa_heads(shape, 3, /*own_output=*/true, at("medusa")); }},
        {"dflash", "dflash", [=] { write_dflash_head(shape, {}, at("dflash")); }},
        {"dspark", "dspark", [=] { write_dflash_head(shape, {.markov = "rnn"}, at("dspark")); }},
        {"module", "module",
         [=] {
           write_hugging_face(make_tiny_pair().target, at("module"));
           write_mtp_modules(shape, 1, at("module"));
         }},
        {"assistant", "assistant", [=] { write_assistant(shape, at("assistant")); }},
        {"text", "text.txt", [this] { write_text(); }},
        {"store", "store", [this] { write_store(); }},
    };
  }

  // The target's own continuation of the prompt, and noise.
  void write_text() const {
    std::ofstream text(directory_.path() / "text.txt");
    text << kFewPrompt
         << Generator(Model::load(target(), {.threads = 1}))
                .generate(kFewPrompt, {.max_tokens = 60, .sampling = few_characters({})})
                .text;
    std::mt19937 random(5);
    for (int n = 0; n < 400; ++n) text << kFewCharacters[random() % kFewCharacters.size()];
  }

  // The drafter with another vocabulary: other ids, and without the last merges.
  void write_foreign_drafter() const {
    constexpr int kSpecial = 2;  // begin and end keep their ids
    constexpr std::size_t kForgotten = 10;
    TinyModel foreign = make_tiny_pair().draft;
    TinyVocabulary vocabulary = make_tiny_vocabulary(foreign.shape.vocabulary_size);
    for (std::size_t i = 0; i < kForgotten; ++i) {
      const auto [left, right] = vocabulary.merges.back();
      vocabulary.merges.pop_back();
      *std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), left + right) =
          fmt::format("forgotten{}", i);
    }
    std::reverse(vocabulary.tokens.begin() + kSpecial, vocabulary.tokens.end());
    const auto width = static_cast<std::ptrdiff_t>(foreign.shape.dim);
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
      std::vector<float>& rows = foreign.at(name).values;
      const std::vector<float> before = rows;
      for (std::ptrdiff_t to = kSpecial; to < foreign.shape.vocabulary_size; ++to) {
        const std::ptrdiff_t from = foreign.shape.vocabulary_size - 1 - to + kSpecial;
        std::copy_n(before.begin() + from * width, width, rows.begin() + to * width);
      }
    }
    write_hugging_face(foreign, directory_.path() / "foreign");
    std::ofstream(directory_.path() / "foreign" / "tokenizer.json") << tokenizer_json(vocabulary);
  }

  // The text, and continuations for worlds of a few tokens: each run of three tokens before each
  // token, some more often than others.
  void write_store() const {
    write_text();
    DatastoreWriter writer(directory_.path() / "store", vocabulary());
    std::ifstream text(directory_.path() / "text.txt");
    writer.add(tokenizer_->encode(std::string(std::istreambuf_iterator<char>(text), {}), true));
    writer.end_document();
    std::mt19937 random(6);
    std::vector<TokenId> tokens(200);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
    writer.add(tokens);
    writer.commit();
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  mutable std::mutex mutex_;
  mutable std::vector<Part> parts_;
};

struct World {
  std::unique_ptr<PrefixModel> target;
  DrafterMaterials materials;
  std::vector<TokenId> prompt;
  std::vector<TokenId> encoder_tokens = {};  // for an encoder-decoder
  // Transforms that leave few enough tokens to enumerate every outcome; the last is greedy.
  std::vector<SamplingParams> few_outcomes;

  int vocabulary_size() const { return materials.vocabulary_size; }
};

inline DrafterPlan plan_of(const DrafterCase& drafter) {
  const std::string spec = DrafterFiles::get().spec(drafter);
  if (drafter.own == Own::none) return read_drafter(spec);
  DrafterPlan plan = read_own_drafter(Spec::parse("drafter", spec), make_own(drafter.own));
  // Each drafter that is made has a separate memory.
  plan.make = [own = drafter.own](const DrafterMaterials& materials) {
    return std::make_unique<OwnDrafterAdapter>(make_own(own), materials.vocabulary_size);
  };
  return plan;
}

// A generator's options for the drafter.
inline SpeculationOptions speculation_of(const DrafterCase& drafter) {
  return {.drafter = DrafterFiles::get().spec(drafter),
          .drafter_options = {.threads = 1},
          .own_drafter = make_own(drafter.own)};
}
// Adds the drafter to a batch, which may have been made with others. Returns its spec.
inline std::string add_to(Batch& batch, const DrafterCase& drafter) {
  const SpeculationOptions options = speculation_of(drafter);
  if (options.own_drafter) batch.add_drafter(options.drafter, options.own_drafter);
  return options.drafter;
}
// Specs of the drafters with which a batch is made.
inline std::vector<std::string> made_with(const DrafterCase& drafter) {
  if (drafter.own != Own::none) return {};
  return {DrafterFiles::get().spec(drafter)};
}

// A target, and for drafters that need a model a drafter. Both are tables of logits over three
// tokens.
inline World table_world(std::uint32_t seed) {
  static constexpr int kVocabulary = 3;
  World world;
  world.target = std::make_unique<TableModel>(kVocabulary, 2 * seed);
  world.materials.target = world.target.get();
  world.materials.vocabulary_size = kVocabulary;
  world.materials.load_model = [seed](const std::filesystem::path& path, const LoadOptions&) {
    const bool is_other = path == DrafterFiles::get().target();
    return std::make_unique<TableModel>(kVocabulary, (is_other ? 1001 : 1) + 2 * seed);
  };
  // A table over four tokens. It shares two of the three tokens and spells the third with two of
  // its own.
  world.materials.load_foreign = [seed](const std::filesystem::path&,
                                        const LoadOptions&) -> ForeignModel {
    return {.model = std::make_unique<TableModel>(4, 1 + 2 * seed),
            .forth = {.spelled = {{2}, {0, 3}, {1}}, .shared = {kNoToken, 2, 0, kNoToken}},
            .back = {.spelled = {{1}, {2}, {0}, {1, 1}}, .shared = {2, kNoToken, 1}}};
  };
  world.materials.tokenize = [](std::string_view text, std::string_view) {
    std::vector<TokenId> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte) % kVocabulary);
    return tokens;
  };
  world.materials.vocabulary_id = [] { return DrafterFiles::get().vocabulary(); };
  world.prompt = {0, 2, 1, 0, 2, 1, 0};
  world.few_outcomes = {{.temperature = 1},
                        {.temperature = 0.8,
                         .top_k = 2,
                         .repetition_penalty = 1.5,
                         .frequency_penalty = 0.3,
                         .logit_bias = {{1, 0.5F}}},
                        {.temperature = 0}};
  return world;
}

// The random pair in files. A seed chooses the prompt.
inline World stored_world(std::uint32_t seed) {
  const DrafterFiles& files = DrafterFiles::get();
  World world;
  world.target = std::make_unique<StoredModel>(files.target());
  world.materials.target = world.target.get();
  world.materials.target_path = files.target();
  world.materials.vocabulary_size = world.target->config().vocabulary_size;
  world.materials.load = {.n_threads = 1};
  world.materials.load_model = [](const std::filesystem::path& path, const LoadOptions& as) {
    return load_model(path, as);
  };
  world.materials.load_foreign = [&files](const std::filesystem::path& path,
                                          const LoadOptions& as) {
    const VocabularySide target{.tokenizer = files.tokenizer(),
                                .n_rows = make_tiny_pair().target.shape.vocabulary_size,
                                .ends = {1}};
    ForeignModel foreign{.model = load_model(path, as), .forth = {}, .back = {}};
    const VocabularySide drafter{.tokenizer = Tokenizer::load(path),
                                 .n_rows = foreign.model->config().vocabulary_size,
                                 .ends = foreign.model->config().end_tokens};
    foreign.forth = translate_vocabulary(target, drafter);
    foreign.back = translate_vocabulary(drafter, target);
    return foreign;
  };
  world.materials.tokenize = [&files](std::string_view text, std::string_view) {
    return files.tokenizer()->encode(text, false);
  };
  world.materials.vocabulary_id = [&files] { return files.vocabulary(); };
  world.prompt =
      files.tokenizer()->encode("A small test: " + std::to_string(seed) + " #%#&@#%#&", true);
  // With many tokens a random head and a random target would hardly ever choose the same one.
  world.few_outcomes = {
      files.few_characters({.temperature = 1, .top_k = 3}),
      files.few_characters(
          {.temperature = 0.8, .top_k = 2, .repetition_penalty = 1.5, .frequency_penalty = 0.3}),
      files.few_characters({.temperature = 0})};
  return world;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WORLDS_H_
