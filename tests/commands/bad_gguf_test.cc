// SPDX-License-Identifier: Apache-2.0
// Broken GGUF files, each made from a good one by one change to its bytes, given to the real
// program: exit status 1, one line of bounded length that names the problem, and an empty standard
// output.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/models/broken_model.h"

namespace outrider::test {
namespace {

// The bytes of a good file, changed in place. Each function finds a key or a tensor by name.
class GgufBytes {
 public:
  explicit GgufBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& bytes() const { return bytes_; }

  void rename(const std::string& name, char last) { bytes_[behind(name) - 1] = last; }
  void set_key_type(const std::string& key, std::uint32_t type) { put(behind(key), type); }
  template <typename T>
  void set_value(const std::string& key, T value) {
    put(behind(key) + 4, value);
  }
  // The new text must not be longer than the old one.
  void set_text(const std::string& key, std::string_view text) {
    put(behind(key) + 4, std::uint64_t{text.size()});
    bytes_.replace(behind(key) + 12, text.size(), text);
  }
  // For arrays: the type of the elements, their number, and the bytes of the first text.
  void set_element_type(const std::string& key, std::uint32_t type) { put(behind(key) + 4, type); }
  void set_array_size(const std::string& key, std::uint64_t n) { put(behind(key) + 8, n); }
  void set_first_element(const std::string& key, std::string_view text) {
    bytes_.replace(behind(key) + 24, text.size(), text);
  }
  // For tensors of two dimensions: sizes (innermost first), type and offset.
  void set_size(const std::string& tensor, std::size_t dimension, std::uint64_t size) {
    put(behind(tensor) + 4 + 8 * dimension, size);
  }
  void set_dimensions(const std::string& tensor, std::uint32_t n) { put(behind(tensor), n); }
  void set_type(const std::string& tensor, std::uint32_t type) { put(behind(tensor) + 20, type); }
  void set_offset(const std::string& tensor, std::uint64_t at) { put(behind(tensor) + 24, at); }

  template <typename T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

 private:
  std::size_t behind(const std::string& name) const {
    test::Bytes wanted;
    test::Gguf::append_text(wanted, name);
    const std::size_t at = bytes_.find(as_text(wanted));
    if (at == std::string::npos) throw std::runtime_error("no " + name);
    return at + wanted.size();
  }
  std::string bytes_;
};

struct BadGguf {
  const char* what;
  std::function<void(GgufBytes&)> breakage;
  std::string names;
};

std::vector<BadGguf> bad_ggufs() {
  constexpr const char* kUp = "blk.1.ffn_up.weight";
  constexpr const char* kTokens = "tokenizer.ggml.tokens";
  constexpr const char* kMerges = "tokenizer.ggml.merges";
  constexpr const char* kEpsilon = "llama.attention.layer_norm_rms_epsilon";
  using F = GgufBytes;
  return {
      {"magic", [](F& f) { f.put(0, 'X'); }, "GGUF"},
      {"version 0", [](F& f) { f.put(4, std::uint32_t{0}); }, "version"},
      {"version 99", [](F& f) { f.put(4, std::uint32_t{99}); }, "version"},
      {"big-endian", [](F& f) { f.put(4, std::uint32_t{3U << 24}); }, "version"},
      {"more tensors than there are", [](F& f) { f.put(8, ~std::uint64_t{0}); }, "tensors"},
      {"more keys than there are", [](F& f) { f.put(16, std::uint64_t{1} << 60); }, ""},
      {"no architecture", [](F& f) { f.rename("general.architecture", 'X'); },
       "general.architecture"},
      {"other architecture", [](F& f) { f.set_text("general.architecture", "rwkv6"); }, "rwkv6"},
      {"no layers given", [](F& f) { f.rename("llama.block_count", 'X'); }, "llama.block_count"},
      {"layers of a real type", [](F& f) { f.set_key_type("llama.block_count", test::kF32); },
       "llama.block_count"},
      {"layers 4 thousand million", [](F& f) { f.set_value("llama.block_count", ~0U); },
       "llama.block_count"},
      {"more layers than tensors", [](F& f) { f.set_value("llama.block_count", 3U); }, "blk.2"},
      {"a key of unknown type", [](F& f) { f.set_key_type("llama.block_count", 77); },
       "llama.block_count"},
      {"context 0", [](F& f) { f.set_value("llama.context_length", 0U); }, "context"},
      {"width wrong", [](F& f) { f.set_value("llama.embedding_length", 128U); }, "token_embd"},
      {"no heads", [](F& f) { f.set_value("llama.attention.head_count", 0U); }, "heads"},
      {"heads that share badly", [](F& f) { f.set_value("llama.attention.head_count_kv", 3U); },
       "key-value heads"},
      {"values of another width", [](F& f) { f.set_value("llama.attention.value_length", 8U); },
       "value_length"},
      {"partly rotated", [](F& f) { f.set_value("llama.rope.dimension_count", 8U); },
       "dimension_count"},
      {"theta NaN",
       [](F& f) { f.set_value("llama.rope.freq_base", std::numeric_limits<float>::quiet_NaN()); },
       "theta"},
      {"epsilon NaN", [](F& f) { f.set_value(kEpsilon, std::numeric_limits<float>::quiet_NaN()); },
       "epsilon"},
      {"no epsilon", [](F& f) { f.rename(kEpsilon, 'X'); }, "epsilon"},
      {"vocabulary size wrong", [](F& f) { f.set_value("llama.vocab_size", 400U); },
       "token_embd.weight"},
      {"a tensor twice",
       [](F& f) {
         const std::string twin = "blk.0.ffn_up.weight";
         std::string bytes = f.bytes();
         bytes.replace(bytes.find(kUp), twin.size(), twin);
         f = F(bytes);
       },
       "blk.0.ffn_up.weight"},
      {"a tensor missing", [](F& f) { f.rename(kUp, 'X'); }, kUp},
      {"a tensor of unknown type", [](F& f) { f.set_type(kUp, 999); }, kUp},
      {"a tensor of unsupported type", [](F& f) { f.set_type(kUp, 10); }, kUp},
      {"a tensor of integers", [](F& f) { f.set_type(kUp, 26); }, kUp},
      {"a tensor of 9 dimensions", [](F& f) { f.set_dimensions(kUp, 9); }, kUp},
      {"a tensor of other shape", [](F& f) { f.set_size(kUp, 1, 32); }, kUp},
      {"a tensor of no size", [](F& f) { f.set_size(kUp, 1, 0); }, kUp},
      {"a tensor too large", [](F& f) { f.set_size(kUp, 1, std::uint64_t{1} << 61); }, kUp},
      {"a tensor beyond the end", [](F& f) { f.set_offset(kUp, std::uint64_t{1} << 40); }, kUp},
      {"a tensor not aligned", [](F& f) { f.set_offset(kUp, 1); }, kUp},
      {"no tokenizer", [](F& f) { f.rename("tokenizer.ggml.model", 'X'); }, "tokenizer.ggml.model"},
      {"other tokenizer", [](F& f) { f.set_text("tokenizer.ggml.model", "bert"); }, "bert"},
      {"other pre-tokenizer", [](F& f) { f.set_text("tokenizer.ggml.pre", "magic"); }, "magic"},
      {"no tokens", [](F& f) { f.rename(kTokens, 'X'); }, kTokens},
      {"tokens a number", [](F& f) { f.set_key_type(kTokens, test::kU64); }, ""},
      {"tokens as integers", [](F& f) { f.set_element_type(kTokens, test::kU64); }, ""},
      {"tokens without end", [](F& f) { f.set_array_size(kTokens, ~std::uint64_t{0} / 2); },
       kTokens},
      {"a token of other bytes", [](F& f) { f.set_first_element(kTokens, "\xff\xff"); }, "UTF-8"},
      {"no merges", [](F& f) { f.rename(kMerges, 'X'); }, kMerges},
      {"a merge of one half", [](F& f) { f.set_first_element(kMerges, "abc"); }, kMerges},
      {"end token a text",
       [](F& f) { f.set_key_type("tokenizer.ggml.eos_token_id", test::kString); }, ""},
  };
}

TEST(BadInput, GgufFilesAreRefused) {
  const fs::path file = Good::get().root() / "bad.gguf";
  const std::string good = read_text(Good::get().gguf());
  for (const BadGguf& bad : bad_ggufs()) {
    SCOPED_TRACE(bad.what);
    GgufBytes bytes(good);
    bad.breakage(bytes);
    write_text(file, bytes.bytes());
    expect_refused(run_program(generate_words(file)), 1, bad.names);
    expect_others_hold(file);
  }
}

TEST(BadInput, GgufFilesCutShortAreRefused) {
  const fs::path file = Good::get().root() / "cut.gguf";
  const std::string good = read_text(Good::get().gguf());
  // Densely in the region of counts and keys, then through vocabulary, tensor headers and data.
  std::vector<std::size_t> lengths = {0, 1, 3, 4, 7, 8, 15, 16, 23, 24, 31, 32, 40, 60, 100, 200};
  for (std::size_t part = 1; part < 32; ++part) lengths.push_back(good.size() * part / 32);
  for (std::size_t part = 1; part < 16; ++part) lengths.push_back(16384 * part / 16);
  lengths.push_back(good.size() - 32);
  for (const std::size_t length : lengths) {
    SCOPED_TRACE(length);
    write_text(file, good.substr(0, length));
    expect_refused(run_program(generate_words(file)), 1, "cut.gguf");
    expect_others_hold(file);
  }
}

}  // namespace
}  // namespace outrider::test
