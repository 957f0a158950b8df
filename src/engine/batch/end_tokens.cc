// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/end_tokens.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace outrider {
namespace {

// Spellings that published models use for the end of a text, turn, message or call, and infilling
// marks after which no text continues: those at which llama.cpp (0.7) ends a text.
constexpr std::string_view kSpellings[] = {
    "</s>",
    "<|end|>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "[EOS]",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|tool_response>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<end_of_utterance>",
};
// Tokens that end only a part of an answer in vocabularies with both of the tokens listed beside
// them.
struct PartOfAnswer {
  std::string_view end;
  std::string_view besides[2];
};
constexpr PartOfAnswer kParts[] = {
    {"<|end|>", {"<|return|>", "<|call|>"}},
    {"<|end|>", {"<|return|>", "<|calls|>"}},
    {"<|end|>", {"<|flush|>", "<|call|>"}},
    {"<|end|>", {"<|flush|>", "<|calls|>"}},
    {"</s>", {"<|tool_response>", "<|tool_response>"}},
};

// An unadded piece with that spelling is plain text.
std::optional<TokenId> find_added(const Tokenizer& tokenizer, std::string_view spelling) {
  const std::optional<TokenId> id = tokenizer.find(spelling);
  return id && tokenizer.is_added(*id) ? id : std::nullopt;
}

bool is_part_of_answer(const Tokenizer& tokenizer, std::string_view spelling) {
  return std::any_of(std::begin(kParts), std::end(kParts), [&](const PartOfAnswer& part) {
    return part.end == spelling && find_added(tokenizer, part.besides[0]) &&
           find_added(tokenizer, part.besides[1]);
  });
}

}  // namespace

std::vector<TokenId> find_end_tokens(std::span<const TokenId> configured,
                                     const Tokenizer& tokenizer) {
  std::vector<TokenId> ends;
  const auto add = [&ends](TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  for (const TokenId id : configured) add(id);
  if (tokenizer.eos_token() != kNoToken) add(tokenizer.eos_token());
  for (const std::string_view spelling : kSpellings) {
    const std::optional<TokenId> id = find_added(tokenizer, spelling);
    if (id && !is_part_of_answer(tokenizer, spelling)) add(*id);
  }
  return ends;
}

std::string_view leading_end_spelling(std::string_view text) {
  std::string_view longest;
  for (const std::string_view spelling : kSpellings) {
    if (text.starts_with(spelling) && spelling.size() > longest.size()) longest = spelling;
  }
  return longest;
}

}  // namespace outrider
