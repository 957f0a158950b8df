// SPDX-License-Identifier: Apache-2.0
// Model::from_memory(): texts, bits and messages equal those of a directory with the same contents.
#include "outrider/model_in_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/models/memory_files.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::MemoryFiles;
using test::TemporaryDirectory;
using test::TinyModel;
using ::testing::HasSubstr;

GenerateResult text_of(const std::shared_ptr<const Model>& model,
                       const SpeculationOptions& speculation = {}) {
  return Generator(model, speculation)
      .generate("A small test", {.max_tokens = 20, .ignore_eos = true, .keep_logits = true});
}

void expect_same(const std::shared_ptr<const Model>& model,
                 const std::shared_ptr<const Model>& expected,
                 const SpeculationOptions& speculation = {}) {
  const GenerateResult one = text_of(model, speculation);
  const GenerateResult other = text_of(expected, speculation);
  EXPECT_EQ(one.ids, other.ids);
  EXPECT_EQ(one.logits, other.logits);
  EXPECT_EQ(one.text, other.text);
}

TEST(ModelInMemory, HasTheBitsOfItsDirectory) {
  for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::f16}) {
    for (const bool tied : {false, true}) {
      test::TinyShape shape;
      shape.tied_head = tied;
      const TemporaryDirectory directory;
      test::write_hugging_face(test::make_tiny_model(shape), directory.path(), type);
      for (const char* weights : {"", "f32", "int8", "int4"}) {
        SCOPED_TRACE(weights);
        const ModelOptions options{.weights = weights, .threads = 1};
        auto files = std::make_unique<MemoryFiles>(directory.path());
        const auto model = Model::from_memory(files->model(), options);
        files->spoil();
        files.reset();
        const auto expected = Model::load(directory.path(), options);
        expect_same(model, expected);
        EXPECT_EQ(model->path(), "");
        EXPECT_EQ(model->end_tokens(), expected->end_tokens());
        EXPECT_EQ(model->summary().weights, expected->summary().weights);
        EXPECT_EQ(model->summary().weight_bytes, expected->summary().weight_bytes);
        EXPECT_EQ(model->summary().n_parameters, expected->summary().n_parameters);
        EXPECT_EQ(model->tokenizer().vocabulary_size(), expected->tokenizer().vocabulary_size());
      }
    }
  }
}

TEST(ModelInMemory, IsReadWithWhatStandsBesideIt) {
  const TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  std::ofstream(directory.path() / "generation_config.json") << R"({"eos_token_id": [1, 7]})";
  std::ofstream(directory.path() / "tokenizer_config.json")
      << R"({"chat_template": "{{ messages[0].content }}"})";
  const MemoryFiles files(directory.path());
  const auto model = Model::from_memory(files.model(), {.threads = 1});
  EXPECT_EQ(model->end_tokens(), Model::load(directory.path(), {.threads = 1})->end_tokens());
  EXPECT_THAT(model->end_tokens(), ::testing::Contains(7));
  EXPECT_EQ(model->tokenizer().chat_template(), "{{ messages[0].content }}");
}

// Drafters read what the target keeps, with the same drafts as for a target in files.
TEST(ModelInMemory, IsDraftedFor) {
  const TemporaryDirectory directory;
  test::write_tiny_pair(directory.path());
  const MemoryFiles files(directory.path() / "target");
  const auto model = Model::from_memory(files.model(), {.threads = 1});
  const auto expected = Model::load(directory.path() / "target", {.threads = 1});
  for (const std::string& drafter :
       {"model:" + (directory.path() / "draft").string(), std::string("layerskip:layers=1"),
        std::string("suffix"), std::string("auto")}) {
    expect_same(model, expected, {.drafter = drafter, .drafter_options = {.threads = 1}});
  }
  try {
    Generator(model, {.drafter = "mtp"});
    FAIL() << "modules from nowhere";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("one from memory (mtp:PATH)"));
  }
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// Errors read like those of a load from files, with "memory" as the path.
TEST(ModelInMemory, IsRefusedInTheWordsOfFiles) {
  struct Broken {
    const char* name;
    std::function<void(TinyModel&)> damage;
    std::function<void(const std::filesystem::path&)> spoil;
    const char* named;
  };
  const auto at = [](TinyModel& model, const char* name) -> test::TinyTensor& {
    return model.at(name);
  };
  const auto write = [](const char* file, const char* text) {
    return [file, text](const std::filesystem::path& directory) {
      std::ofstream(directory / file) << text;
    };
  };
  const Broken all[] = {
      {"a tensor that is missing",
       [&](TinyModel& model) { at(model, "model.norm.weight").name = "x"; },
       {},
       "model.norm.weight"},
      {"a matrix that is missing",
       [&](TinyModel& model) { at(model, "model.layers.1.mlp.up_proj.weight").name = "x"; },
       {},
       "model.layers.1.mlp.up_proj.weight"},
      {"a shape",
       [&](TinyModel& model) {
         test::TinyTensor& tensor = at(model, "model.layers.0.self_attn.q_proj.weight");
         std::swap(tensor.shape[0], tensor.shape[1]);
         tensor.shape[0] *= 2;
         tensor.shape[1] /= 2;
       },
       {},
       "model.layers.0.self_attn.q_proj.weight"},
      {"a configuration that is none", {}, write("config.json", "{"), "a syntax error"},
      {"a family that nobody knows",
       {},
       write("config.json", R"({"model_type": "zebra"})"),
       "zebra"},
      {"no object", {}, write("generation_config.json", "[]"), "a JSON object"},
      {"a tokenizer that is none", {}, write("tokenizer.json", "{}"), "tokenizer.json"},
      {"a tokenizer's neighbour", {}, write("tokenizer_config.json", "[]"), "an object"},
      {"no tokenizer",
       {},
       [](const std::filesystem::path& directory) {
         std::filesystem::remove(directory / "tokenizer.json");
       },
       "a directory with a tokenizer.json"}};
  for (const Broken& one : all) {
    SCOPED_TRACE(one.name);
    const TemporaryDirectory directory;
    TinyModel model = test::make_tiny_model({});
    if (one.damage) one.damage(model);
    test::write_hugging_face(model, directory.path());
    if (one.spoil) one.spoil(directory.path());
    const MemoryFiles files(directory.path());
    std::string expected = message_of([&] { Model::load(directory.path(), {.threads = 1}); });
    replace(expected, (directory.path() / "model.safetensors").string(), "memory");
    replace(expected, directory.path().string(), "memory");
    const std::string message =
        message_of([&] { Model::from_memory(files.model(), {.threads = 1}); });
    EXPECT_EQ(message, expected);
    EXPECT_THAT(message, HasSubstr(one.named));
    EXPECT_THAT(message, HasSubstr("memory"));
  }
}

TEST(ModelInMemory, RefusesTypesThatNobodyKnows) {
  const TemporaryDirectory directory;
  test::write_hugging_face(test::make_tiny_model({}), directory.path());
  const MemoryFiles files(directory.path());
  const auto refusal = [&](const std::function<void(ModelInMemory&)>& change) {
    ModelInMemory model = files.model();
    change(model);
    return message_of([&] { Model::from_memory(model, {.threads = 1}); });
  };
  const auto tensor = [](ModelInMemory& model, const char* name) -> ModelTensor& {
    return *std::find_if(model.tensors.begin(), model.tensors.end(),
                         [name](const ModelTensor& one) { return one.name == name; });
  };
  for (const char* type : {"float8_e4m3fn", "i64", ""}) {
    const std::string message =
        refusal([&](ModelInMemory& model) { tensor(model, "model.norm.weight").type = type; });
    EXPECT_THAT(message, HasSubstr("memory"));
    EXPECT_THAT(message, HasSubstr("model.norm.weight"));
    EXPECT_THAT(message, HasSubstr(type));
  }
  EXPECT_THAT(refusal([&](ModelInMemory& model) {
                tensor(model, "model.norm.weight").data =
                    tensor(model, "model.norm.weight").data.first(8);
              }),
              HasSubstr("[read tensors] memory: tensor 'model.norm.weight'"));
  EXPECT_THAT(refusal([&](ModelInMemory& model) { model.tensors.push_back(model.tensors[0]); }),
              HasSubstr("unique"));
  EXPECT_THAT(refusal([&](ModelInMemory& model) { model.config.clear(); }),
              HasSubstr("memory/config.json"));
  EXPECT_THAT(
      message_of([&] { Model::from_memory(files.model(), {.experts = "mapped", .threads = 1}); }),
      HasSubstr("a model in files, got one in memory"));
}

}  // namespace
}  // namespace outrider
