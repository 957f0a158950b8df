// SPDX-License-Identifier: Apache-2.0
#include "train/batches/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <system_error>
#include <utility>

#include "base/mix_bits.h"
#include "outrider/error.h"
#include "train/batches/corpus_parts.h"

namespace outrider::train {

std::string read_text_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    throw Error("read text", path.string(), "a readable file",
                file ? "a directory" : std::generic_category().message(errno));
  }
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) throw Error("read text", path.string(), "cannot be read to its end");
  require_text(text, path.string());
  return text;
}

void shuffle(std::vector<std::int32_t>& values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = values.size(); i > 1; --i) {
    // The remainder's bias towards small numbers is below n / 2^64.
    std::swap(values[i - 1], values[static_cast<std::size_t>(random() % i)]);
  }
}

std::uint64_t fingerprint_of(std::span<const TokenId> tokens, std::uint64_t before) {
  for (const TokenId token : tokens) before = mix(before, static_cast<std::uint32_t>(token));
  return before;
}

namespace {

void require_shape(const BatchShape& shape) {
  if (shape.n_sequences < 1 || shape.length < 2) {
    throw Error("make batches", "shape", "at least one sequence of two tokens",
                fmt::format("{} of {}", shape.n_sequences, shape.length));
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return mix_bits(mix_bits(mix_bits(seed + kMixIncrement) + a + kMixIncrement) + b + kMixIncrement);
}

void order_epoch(std::uint64_t seed, std::int64_t epoch,
                 const std::function<bool(std::int32_t, std::int32_t)>& is_before,
                 std::vector<std::int32_t>& texts, std::vector<std::int32_t>& batches) {
  const std::uint64_t drawn = mix(seed, static_cast<std::uint64_t>(epoch));
  std::iota(texts.begin(), texts.end(), 0);
  shuffle(texts, mix(drawn, 1));
  std::stable_sort(texts.begin(), texts.end(), is_before);
  std::iota(batches.begin(), batches.end(), 0);
  shuffle(batches, mix(drawn, 2));
}

std::vector<TokenId> encode_text_files(std::span<const std::filesystem::path> files,
                                       const Tokenizer& tokenizer, std::string_view separator) {
  std::vector<TokenId> stream;
  for (const std::filesystem::path& path : files) {
    const std::string text = read_text_file(path);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end =
          separator.empty() ? text.size() : std::min(text.find(separator, begin), text.size());
      std::string_view document(text.data() + begin, end - begin);
      const std::size_t first = document.find_first_not_of(" \t\r\n");
      if (first != std::string_view::npos) {
        document.remove_prefix(first);
        const std::vector<TokenId> ids = tokenizer.encode(document, true);
        stream.insert(stream.end(), ids.begin(), ids.end());
        // A document without an end token teaches a model never to stop.
        if (tokenizer.eos_token() != kNoToken &&
            (ids.empty() || ids.back() != tokenizer.eos_token())) {
          stream.push_back(tokenizer.eos_token());
        }
      }
      begin = separator.empty() ? text.size() : end + separator.size();
    }
  }
  if (stream.empty()) {
    throw Error("read text", files.empty() ? "corpus" : files.front().string(), "some text",
                "nothing but blanks");
  }
  return stream;
}

WindowSource::WindowSource(std::vector<TokenId> stream, const BatchShape& shape)
    : stream_(std::move(stream)), shape_(shape) {
  require_shape(shape);
  if (n_tokens() < shape_.length) {
    throw Error("make batches", "corpus", fmt::format("at least {} tokens", shape_.length),
                fmt::format("{}", n_tokens()));
  }
  // For any shift, which is below one window, this many windows fit after it.
  windows_per_epoch_ = std::max<std::int64_t>(1, n_tokens() / shape_.length - 1);
}

void WindowSource::start_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  const std::uint64_t seed = mix(shape_.seed, static_cast<std::uint64_t>(epoch));
  const std::int64_t slack = n_tokens() - windows_per_epoch_ * shape_.length;
  shift_ = static_cast<std::int64_t>(mix(seed, 1) % static_cast<std::uint64_t>(slack + 1));
  order_.resize(static_cast<std::size_t>(windows_per_epoch_));
  std::iota(order_.begin(), order_.end(), 0);
  shuffle(order_, seed);
}

std::uint64_t WindowSource::fingerprint() const { return fingerprint_of(stream_); }

Batch WindowSource::batch(std::int64_t number) {
  Batch batch{
      .n_sequences = shape_.n_sequences, .length = shape_.length, .tokens = {}, .weights = {}};
  for (std::int64_t i = 0; i < shape_.n_sequences; ++i) {
    const std::int64_t sample = number * shape_.n_sequences + i;
    start_epoch(sample / windows_per_epoch_);
    const std::int64_t window = order_[static_cast<std::size_t>(sample % windows_per_epoch_)];
    const auto first = stream_.begin() + shift_ + window * shape_.length;
    batch.tokens.insert(batch.tokens.end(), first, first + shape_.length);
    batch.weights.push_back(0);
    batch.weights.insert(batch.weights.end(), static_cast<std::size_t>(shape_.length - 1), 1.0F);
  }
  return batch;
}

namespace {

constexpr const char* kReadExamples = "read examples";

Example example_of_texts(const nlohmann::json& json, const Tokenizer& tokenizer) {
  Example example;
  example.tokens = tokenizer.encode(json["prompt"].get<std::string>(), true);
  example.n_prompt = static_cast<int>(example.tokens.size());
  const auto completion = tokenizer.encode(json["completion"].get<std::string>(), false);
  example.tokens.insert(example.tokens.end(), completion.begin(), completion.end());
  if (tokenizer.eos_token() != kNoToken) example.tokens.push_back(tokenizer.eos_token());
  return example;
}

Example example_of_tokens(const nlohmann::json& json, const Tokenizer& tokenizer,
                          const std::string& where) {
  Example example;
  for (const char* key : {"prompt_tokens", "completion_tokens"}) {
    const auto list = json.find(key);
    if (list == json.end() || !list->is_array()) {
      throw Error(kReadExamples, where, fmt::format("a list under \"{}\"", key), "none");
    }
    for (const auto& id : *list) {
      if (!id.is_number_integer() || id < 0 || id >= tokenizer.vocabulary_size()) {
        throw Error(kReadExamples, where, fmt::format("ids of the tokenizer under \"{}\"", key),
                    id.dump());
      }
      example.tokens.push_back(id.get<TokenId>());
    }
    if (example.n_prompt == 0) example.n_prompt = static_cast<int>(example.tokens.size());
  }
  const std::span<const TokenId> prompt(example.tokens.data(),
                                        static_cast<std::size_t>(example.n_prompt));
  if (tokenizer.decode(prompt, true) != json["prompt"].get<std::string>()) {
    throw Error(kReadExamples, where, "tokens of this vocabulary", "others than \"prompt\" says");
  }
  return example;
}

}  // namespace

std::vector<Example> read_examples(const std::filesystem::path& file, const Tokenizer& tokenizer) {
  constexpr const char* kOperation = kReadExamples;
  const std::string text = read_text_file(file);
  std::vector<Example> examples;
  std::size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content(text.data() + begin, end - begin);
    begin = end + 1;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{} line {}", file.string(), line);
    const auto json = nlohmann::json::parse(content, nullptr, false);
    if (!json.is_object()) throw Error(kOperation, where, "a JSON object", "something else");
    for (const char* key : {"prompt", "completion"}) {
      if (!json.contains(key) || !json[key].is_string()) {
        throw Error(kOperation, where, fmt::format("a text under \"{}\"", key), "none");
      }
    }
    Example example = json.contains("prompt_tokens") ? example_of_tokens(json, tokenizer, where)
                                                     : example_of_texts(json, tokenizer);
    if (static_cast<int>(example.tokens.size()) == example.n_prompt || example.n_prompt == 0) {
      throw Error(kOperation, where, "a prompt and a completion that are not empty",
                  "an empty one");
    }
    examples.push_back(std::move(example));
  }
  if (examples.empty()) throw Error(kOperation, file.string(), "at least one line", "none");
  return examples;
}

ExampleSource::ExampleSource(std::vector<Example> examples, const BatchShape& shape,
                             TokenId padding)
    : examples_(std::move(examples)), shape_(shape), padding_(padding) {
  require_shape(shape);
  std::erase_if(examples_,
                [&](const Example& example) { return example.n_prompt >= shape.length; });
  if (examples_.empty()) {
    throw Error("make batches", "examples", fmt::format("a prompt below {} tokens", shape.length),
                "none");
  }
  for (Example& example : examples_) {
    if (static_cast<int>(example.tokens.size()) > shape.length) {
      example.tokens.resize(static_cast<std::size_t>(shape.length));
    }
    n_tokens_ += static_cast<std::int64_t>(example.tokens.size());
  }
  const auto n = static_cast<std::int64_t>(examples_.size());
  batches_per_epoch_ = (n + shape_.n_sequences - 1) / shape_.n_sequences;
}

void ExampleSource::start_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  const auto is_shorter = [this](std::int32_t left, std::int32_t right) {
    return examples_[static_cast<std::size_t>(left)].tokens.size() <
           examples_[static_cast<std::size_t>(right)].tokens.size();
  };
  order_.resize(examples_.size());
  batches_.resize(static_cast<std::size_t>(batches_per_epoch_));
  order_epoch(shape_.seed, epoch, is_shorter, order_, batches_);
}

std::uint64_t ExampleSource::fingerprint() const {
  std::uint64_t all = 0;
  for (const Example& example : examples_) {
    all = mix(fingerprint_of(example.tokens, all), static_cast<std::uint64_t>(example.n_prompt));
  }
  return all;
}

Batch ExampleSource::batch(std::int64_t number) {
  start_epoch(number / batches_per_epoch_);
  const auto first = std::size_t{static_cast<std::uint32_t>(
                         batches_[static_cast<std::size_t>(number % batches_per_epoch_)])} *
                     static_cast<std::size_t>(shape_.n_sequences);
  std::vector<const Example*> chosen;
  std::vector<std::int32_t> numbers;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.n_sequences); ++i) {
    // An epoch's last batch is filled up with the first examples.
    const auto index = static_cast<std::size_t>(order_[(first + i) % order_.size()]);
    chosen.push_back(&examples_[index]);
    numbers.push_back(order_[(first + i) % order_.size()]);
    longest = std::max(longest, examples_[index].tokens.size());
  }
  Batch batch{.n_sequences = shape_.n_sequences,
              .length = static_cast<int>(longest),
              .tokens = {},
              .weights = {},
              .examples = std::move(numbers)};
  for (const Example* example : chosen) {
    for (std::size_t i = 0; i < longest; ++i) {
      const bool there = i < example->tokens.size();
      batch.tokens.push_back(there ? example->tokens[i] : padding_);
      batch.weights.push_back(there && static_cast<int>(i) >= example->n_prompt ? 1.0F : 0.0F);
    }
  }
  return batch;
}

}  // namespace outrider::train
