// SPDX-License-Identifier: Apache-2.0
// The edges between layers that docs/architecture.md allows, checked against the #include lines of
// every source. The checker is a function of (path, text), so that samples which break each rule
// show that it can fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Layer {
  std::string name;
  std::vector<std::string> below;  // its direct dependencies
};

// The layers of src/, bottom first. Each may also include the dependencies of its dependencies.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> table = {
      {"base", {}},
      {"kernels", {}},
      {"io", {"base"}},
      {"chat_template", {"base"}},
      {"device", {"kernels", "base"}},
      {"tensor", {"kernels", "base"}},
      {"tokenizer", {"base", "io"}},
      {"grammar", {"base"}},
      {"sampling", {"kernels", "grammar", "base"}},
      {"model", {"tensor", "io", "device"}},
      {"speculate", {"sampling", "model"}},
      {"reply", {"base", "grammar"}},
      {"engine", {"speculate", "tokenizer", "chat_template", "grammar", "reply"}},
      {"vocabulary_training", {"tokenizer"}},
      {"train", {"speculate", "tokenizer"}},
      {"eval", {"engine"}},
      {"measure", {"engine"}},
      {"server", {"reply"}},
      {"mpi", {"model"}},
  };
  return table;
}

bool is_layer(const std::string& name) {
  return std::any_of(layers().begin(), layers().end(),
                     [&](const Layer& layer) { return layer.name == name; });
}

// The layer itself and all its dependencies, direct and indirect.
std::set<std::string> reachable_from(const std::string& name) {
  std::set<std::string> reached = {name};
  for (auto layer = layers().rbegin(); layer != layers().rend(); ++layer) {  // From the top down.
    if (reached.contains(layer->name)) reached.insert(layer->below.begin(), layer->below.end());
  }
  return reached;
}

// The float environment of worker threads is set through MXCSR, whose accessors belong to the
// intrinsics.
bool may_use_intrinsics(std::string_view path, std::string_view header) {
  return path.starts_with("src/kernels/") ||
         (path.starts_with("src/tensor/team") && header == "xmmintrin.h");
}

bool is_intrinsics(std::string_view header) {
  return header.ends_with("intrin.h") || header == "cpuid.h" || header == "arm_neon.h" ||
         header == "arm_sve.h";
}

bool is_device(std::string_view header) {
  return header.starts_with("cuda") || header.starts_with("cublas") || header.starts_with("hip/") ||
         header.starts_with("vulkan/");
}

// <vector> and similar: no folder, no extension.
bool is_standard(std::string_view header) {
  return std::all_of(header.begin(), header.end(),
                     [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); });
}

struct Include {
  int line = 0;
  bool quoted = false;
  std::string header;
};

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> includes;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    char hash = 0;
    std::string directive;
    char opening = 0;
    if (!(words >> hash) || hash != '#') continue;
    std::getline(words >> std::ws, directive, 'e');  // "#include", "# include", "#include<x>"
    if (directive != "includ" || !(words >> opening)) continue;
    Include include{.line = number, .quoted = opening == '"', .header = {}};
    std::getline(words, include.header, opening == '<' ? '>' : opening);
    includes.push_back(include);
  }
  return includes;
}

// Why the file at `path` (relative to the project's root) may not include this; empty if it may.
std::string objection(const std::string& path, const Include& include) {
  const std::string& header = include.header;
  const std::string first_part = header.substr(0, header.find('/'));
  const std::string file = path.substr(path.rfind('/') + 1);
  const bool is_test = path.ends_with("_test.cc");
  if (header.starts_with(".") || header.find("/.") != std::string::npos) {
    return "names a file relative to itself";
  }
  if (is_intrinsics(header) && !may_use_intrinsics(path, header)) {
    return "intrinsics belong to src/kernels";
  }

  if (path.starts_with("include/")) {
    if (include.quoted ? first_part == "outrider" : is_standard(header)) return {};
    return "public headers stand on the standard library and each other";
  }
  if (path.starts_with("apps/")) {
    if (!include.quoted) return is_device(header) ? "programs know no device" : "";
    const bool is_own = header.find('/') == std::string::npos || first_part == "apps";
    if (first_part == "outrider" || is_own || is_test) return {};
    // The trainer has no public headers: its program depends on its library and on that library's
    // dependencies.
    if (path.starts_with("apps/trainer/") &&
        (first_part == "trainer" || reachable_from("train").contains(first_part))) {
      return {};
    }
    // Evaluation has no public headers either; the trainer scores answers with its metrics.
    if (first_part == "eval" &&
        (file.starts_with("eval") || path.starts_with("apps/trainer/answer_score"))) {
      return {};
    }
    // The server has none either.
    if (file.starts_with("serve") && first_part == "server") return {};
    // The trainer of vocabularies has no public header: it is linked into the program alone.
    if (file.starts_with("train_tokenizer") && first_part == "vocabulary_training") return {};
    return "programs stand on the public headers";
  }
  if (path.starts_with("python/")) {
    if (!include.quoted) return is_device(header) ? "bindings know no device" : "";
    const bool is_own = header.find('/') == std::string::npos;
    return first_part == "outrider" || is_own ? "" : "bindings stand on the public headers";
  }

  const std::string layer = path.substr(4, path.find('/', 4) - 4);  // after "src/"
  if (!is_layer(layer)) return "stands in no known layer";
  if (layer == "kernels" && !is_test) {
    const bool is_own = include.quoted && first_part == "kernels";
    const bool is_system =
        !include.quoted && (is_standard(header) || is_intrinsics(header) || header == "unistd.h" ||
                            first_part == "sys" || first_part == "asm");
    return is_own || is_system ? "" : "kernels stand on nothing";
  }
  if (!include.quoted) {
    if (first_part == "CLI") return "the command line belongs to apps";
    if (is_device(header) && layer != "device") return "GPUs belong to src/device";
    // The two libraries bring incompatible versions of protobuf into one process.
    if (first_part == "torch" && layer != "train") return "libtorch belongs to src/train";
    if (header == "mpi.h" && layer != "mpi") return "MPI belongs to src/mpi";
    if (header.starts_with("sentencepiece") && layer != "vocabulary_training") {
      return "SentencePiece belongs to src/vocabulary_training";
    }
    return {};
  }
  // A module that is loaded at run time, without any symbol of the library.
  if (layer == "mpi" && header != "model/ranks/transport.h") return "mpi stands on a header alone";
  if (first_part == "outrider" || reachable_from(layer).contains(first_part)) return {};
  // A test may also use shared fixtures and base.
  if (is_test && (first_part == "tests" || first_part == "base")) return {};
  if (is_layer(first_part)) return layer + " does not stand on " + first_part;
  return "names no layer";
}

// One line for every include that breaks the rules.
std::vector<std::string> violations(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  for (const Include& include : includes_of(text)) {
    const std::string reason = objection(path, include);
    if (reason.empty()) continue;
    found.push_back(path + ":" + std::to_string(include.line) + ": " + include.header + ": " +
                    reason);
  }
  return found;
}

struct Source {
  std::string path;  // relative to the project's root
  std::string text;
};

std::vector<Source> all_sources() {
  const fs::path root = OUTRIDER_SOURCE_DIR;
  std::vector<Source> sources;
  for (const char* folder : {"include", "src", "apps", "python"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      const bool is_source =
          extension == ".h" || extension == ".cc" || extension == ".cu" || extension == ".cuh";
      if (!entry.is_regular_file() || !is_source) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      sources.push_back({entry.path().lexically_relative(root).string(), text.str()});
    }
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return sources;
}

TEST(Layers, EverySourceKeepsToTheAllowedEdges) {
  const std::vector<Source> sources = all_sources();
  ASSERT_GT(sources.size(), 20U) << "sources not found below " << OUTRIDER_SOURCE_DIR;
  for (const Source& source : sources) EXPECT_THAT(violations(source.path, source.text), IsEmpty());
}

TEST(Layers, CatchesEveryKindOfWrongEdge) {
  struct Sample {
    const char* path;
    const char* line;
    const char* reason;
  };
  const Sample samples[] = {
      {"include/outrider/a.h", "#include <nlohmann/json.hpp>", "public headers"},
      {"include/outrider/a.h", "#include <immintrin.h>", "intrinsics"},
      {"include/outrider/a.h", "#include <cuda_runtime.h>", "public headers"},
      {"include/outrider/a.h", "#include <unistd.h>", "public headers"},
      {"include/outrider/a.h", "#include \"base/float16.h\"", "public headers"},
      {"apps/main.cc", "#include \"engine/engine.h\"", "programs stand on"},
      {"apps/main.cc", "#include \"vocabulary_training/a.h\"", "programs stand on"},
      {"apps/train_tokenizer.cc", "#include \"tokenizer/bpe.h\"", "programs stand on"},
      {"apps/main.cc", "#include \"eval/task.h\"", "programs stand on"},
      {"apps/main.cc", "#include \"server/server.h\"", "programs stand on"},
      {"apps/serve.cc", "#include \"reply/tool_set.h\"", "programs stand on"},
      {"apps/eval.cc", "#include \"engine/decoder.h\"", "programs stand on"},
      {"apps/trainer/train_lm.cc", "#include \"eval/metrics/bleu.h\"", "programs stand on"},
      {"apps/serve.cc", "#include \"engine/decoder.h\"", "programs stand on"},
      {"apps/commands/serve.cc", "#include \"engine/decoder.h\"", "programs stand on"},
      {"apps/commands/inspect.cc", "#include \"server/server.h\"", "programs stand on"},
      {"apps/evaluation/eval.cc", "#include \"engine/decoder.h\"", "programs stand on"},
      {"apps/evaluation/item_progress.cc", "#include \"eval/task.h\"", "programs stand on"},
      {"apps/main.cc", "#include <cuda.h>", "no device"},
      {"python/src/a.cc", "#include \"engine/batch_state.h\"", "bindings stand on"},
      {"python/src/a.cc", "#include \"server/server.h\"", "bindings stand on"},
      {"python/src/a.h", "#include <cuda.h>", "no device"},
      {"src/engine/a.cc", "#include \"server/server.h\"", "engine does not stand on server"},
      {"src/reply/a.cc", "#include \"server/server.h\"", "reply does not stand on server"},
      {"src/base/a.cc", "#include \"io/gguf.h\"", "base does not stand on io"},
      {"src/kernels/a.cc", "#include \"base/float16.h\"", "kernels stand on nothing"},
      {"src/kernels/a.cc", "#include \"outrider/error.h\"", "kernels stand on nothing"},
      {"src/kernels/a.cc", "#include <fmt/format.h>", "kernels stand on nothing"},
      {"src/tensor/a.cc", "#include <immintrin.h>", "intrinsics"},
      {"src/tensor/team.cc", "#include <immintrin.h>", "intrinsics"},
      {"src/tensor/a.h", "#include \"io/gguf.h\"", "tensor does not stand on io"},
      {"src/sampling/a.cc", "#include \"model/config.h\"", "sampling does not stand on model"},
      {"src/tokenizer/a.cc", "#include \"model/config.h\"", "tokenizer does not stand on model"},
      {"src/model/a.cc", "#include \"sampling/chance.h\"", "model does not stand on sampling"},
      {"src/speculate/a.cc", "#include \"tokenizer/bpe.h\"", "speculate does not stand on token"},
      {"src/speculate/drafters/a.cc", "#include \"engine/a.h\"", "speculate does not stand on"},
      {"src/train/a.cc", "#include \"engine/speculation.h\"", "train does not stand on engine"},
      {"src/train/a.cc", "#include \"vocabulary_training/a.h\"", "train does not stand on voc"},
      {"src/train/a.cc", "#include <sentencepiece_trainer.h>", "SentencePiece"},
      {"src/vocabulary_training/a.cc", "#include <torch/torch.h>", "libtorch"},
      {"src/vocabulary_training/a.cc", "#include \"model/a.h\"", "does not stand on model"},
      {"src/eval/a.cc", "#include \"server/a.h\"", "eval does not stand on server"},
      {"src/model/ranks/a.cc", "#include <mpi.h>", "MPI belongs to src/mpi"},
      {"src/mpi/a.cc", "#include \"model/ranks/communicator.h\"", "on a header alone"},
      {"src/engine/a.cc", "#include <CLI/CLI.hpp>", "command line"},
      {"src/engine/a.cc", "#include <cuda.h>", "GPUs belong to"},
      {"src/tensor/a.cc", "#include <vulkan/vulkan.h>", "GPUs belong to"},
      {"apps/devices.cc", "#include <vulkan/vulkan.h>", "no device"},
      {"src/device/a.cc", "#include \"tensor/team.h\"", "device does not stand on tensor"},
      {"src/kernels/a.cc", "#include \"device/step.h\"", "kernels stand on nothing"},
      {"src/engine/a.cc", "#include \"../model/config.h\"", "relative"},
      {"src/engine/a.cc", "#include \"model/../tests/near.h\"", "relative"},
      {"src/engine/a.cc", "#include \"tests/support/near.h\"", "names no layer"},
      {"src/engine/a.cc", "#include \"engine.h\"", "names no layer"},
      {"src/cellar/a.cc", "#include <vector>", "no known layer"},
      {"src/base/a.cc", "  #  include \"io/gguf.h\"  // why", "base does not stand on io"},
      {"src/base/a_test.cc", "#include \"engine/a.h\"", "base does not stand on engine"},
  };
  for (const Sample& sample : samples) {
    EXPECT_THAT(violations(sample.path, std::string("\n") + sample.line + "\n"),
                ElementsAre(HasSubstr(sample.reason)))
        << sample.path << " " << sample.line;
  }
}

TEST(Layers, LetsAllowedEdgesPass) {
  const Source samples[] = {
      {"include/outrider/a.h", "#include <string_view>\n#include \"outrider/types.h\"\n"},
      {"apps/main.cc", "#include <CLI/CLI.hpp>\n#include \"outrider/a.h\"\n#include \"flags.h\"\n"},
      {"apps/train_tokenizer.cc", "#include \"vocabulary_training/a.h\"\n#include \"flags.h\"\n"},
      {"apps/eval_a.cc", "#include \"eval/task.h\"\n#include \"flags.h\"\n"},
      {"apps/trainer/answer_score.cc", "#include \"eval/metrics/bleu.h\"\n"},
      {"apps/serve.cc", "#include \"server/server.h\"\n#include \"flags.h\"\n"},
      {"apps/commands/serve.cc", "#include \"server/server.h\"\n#include \"apps/cli/entry.h\"\n"},
      {"apps/evaluation/eval_a.cc", "#include \"eval/tasks/task.h\"\n"},
      {"python/src/a.cc",
       "#include <pybind11/numpy.h>\n#include \"outrider/a.h\"\n#include \"bindings.h\"\n"},
      {"src/server/http/a.cc", "#include <boost/asio/post.hpp>\n#include \"reply/a.h\"\n"},
      {"src/eval/a.cc", "#include \"engine/spec.h\"\n#include \"model/language_model.h\"\n"},
      {"src/vocabulary_training/a.cc",
       "#include <sentencepiece_trainer.h>\n#include \"tokenizer/bpe.h\"\n#include \"base/a.h\"\n"},
      {"src/mpi/a.cc", "#include <mpi.h>\n#include \"model/ranks/transport.h\"\n"},
      {"src/base/a.cc", "#include <sys/mman.h>\n#include \"outrider/error.h\"\n"},
      {"src/kernels/avx2.cc", "#include <immintrin.h>\n#include \"kernels/table.h\"\n"},
      {"src/kernels/a_test.cc", "#include \"base/float16.h\"\n#include <gtest/gtest.h>\n"},
      {"src/tensor/team.cc", "#include <xmmintrin.h>\n#include <omp.h>\n"},
      {"src/device/vulkan/a.h", "#include <vulkan/vulkan.h>\n#include \"kernels/table.h\"\n"},
      {"src/model/llama.cc", "#include \"kernels/table.h\"\n#include \"base/float16.h\"\n"},
      {"src/speculate/drafters/a.cc", "#include \"model/config.h\"\n#include \"sampling/a.h\"\n"},
      {"src/engine/a.cc", "#include \"kernels/table.h\"\n#include \"tokenizer/bpe.h\"\n"},
      {"src/engine/a_test.cc", "#include \"tests/support/near.h\"\n"},
      {"src/engine/a.cc", "// #include <cuda.h>\nconst char* text = \"#include <cuda.h>\";\n"},
  };
  for (const Source& sample : samples) {
    EXPECT_THAT(violations(sample.path, sample.text), IsEmpty()) << sample.path;
  }
}

TEST(Layers, EachStandsOnLayersBelowItOnly) {
  std::set<std::string> below;
  for (const Layer& layer : layers()) {
    for (const std::string& name : layer.below) {
      EXPECT_TRUE(below.contains(name)) << layer.name << " stands on " << name;
    }
    EXPECT_TRUE(below.insert(layer.name).second) << layer.name << " is named twice";
  }
}

}  // namespace
