// SPDX-License-Identifier: Apache-2.0
// The prompts for tuning drafters if the user has none.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "measure/text_beginnings.h"
#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

// A question for chat models, and a beginning for models that continue texts. Answers that repeat
// their prompt alternate with new ones, so both kinds are measured if the time ends early.
struct TuningPrompt {
  const char* kind;
  const char* message;
  const char* opening;
};

constexpr std::array<TuningPrompt, 8> kPrompts = {{
    {"code",
     "Write a Python class Stack with the methods push, pop, peek and is_empty. Give each method a "
     "docstring and show a short example of its use.",
     "class Stack:\n    \"\"\"Items of which the last one comes out first.\"\"\"\n\n    def "
     "__init__(self):\n        self.items = []\n\n    def push(self, item):\n"},
    {"question", "Why is the sky blue by day and red in the evening? Explain it to a child of ten.",
     "The sky is blue by day and red in the evening. The reason for this is"},
    {"rewriting",
     "Put this paragraph into the past tense and change nothing else: The ferry leaves the harbour "
     "at six. A dozen people stand on its deck and look back at the town. The captain waves to the "
     "keeper of the lighthouse, who waves back. Behind them the first lamps go on, and the bells "
     "of the church begin to ring.",
     "The ferry leaves the harbour at six. A dozen people stand on its deck and look back at the "
     "town. The next day it is the same: the ferry leaves the harbour at six, and a dozen people"},
    {"story", "Tell a short story about a clockmaker who finds a clock that runs backwards.",
     "The old clockmaker had mended every clock in the town but one. It stood in the corner of his "
     "shop, and its hands ran backwards. One evening"},
    {"summary",
     "Summarise in three sentences: The village council met on Monday to decide about the old "
     "mill. Some members wanted to sell the building to a company that makes furniture, because "
     "its repair would cost more than the village earns in a year. Others wished to keep it as a "
     "museum, and reminded the council that the mill had ground the flour of five villages for two "
     "hundred years. After three hours the council agreed to ask the county for money, and to sell "
     "the mill only if the county refuses.",
     "The village council met on Monday to decide about the old mill. Some members wanted to sell "
     "it; others wished to keep it. In short, the council"},
    {"mathematics",
     "A train leaves at 9:40 and arrives at 13:05. It stops three times for four minutes each. How "
     "long does it move? Show each step.",
     "A train leaves at nine and arrives at one. It stops three times for four minutes each. To "
     "find out how long it moves, we first"},
    {"translation",
     "Translate into French: The library opens at nine in the morning and closes at seven in the "
     "evening. On Sundays it stays closed. Whoever returns a book too late pays ten cents for each "
     "day.",
     "English: The library opens at nine. On Sundays it stays closed.\nFrench: La "
     "biblioth\xc3\xa8que "
     "ouvre \xc3\xa0 neuf heures."},
    {"list",
     "List ten things to pack for a walk of three days in the mountains, each with a reason in a "
     "few words.",
     "Things to pack for a walk in the mountains:\n1. A map, for the paths are not marked.\n2. A "
     "coat, for it may rain.\n3."},
}};

constexpr const char* kSet = "built-in";

}  // namespace

std::vector<ComparedPrompt> tuning_prompts(const Model& model) {
  const bool answers = !model.tokenizer().chat_template().empty();
  std::vector<ComparedPrompt> prompts;
  prompts.reserve(kPrompts.size());
  for (const TuningPrompt& one : kPrompts) {
    prompts.push_back({.set = kSet,
                       .id = one.kind,
                       .category = one.kind,
                       .topic = one.kind,
                       .turns = {answers ? one.message : one.opening}});
  }
  return prompts;
}

std::vector<ComparedPrompt> tuning_prompts(const Model& model, const ContinuedTexts& texts) {
  const auto beginnings = text_beginnings(model.tokenizer(), texts, "read texts to tune on");
  std::vector<ComparedPrompt> prompts;
  prompts.reserve(beginnings.size());
  for (const std::vector<TokenId>& tokens : beginnings) {
    prompts.push_back({.set = "texts",
                       .id = fmt::format("{}", prompts.size() + 1),
                       .category = "texts",
                       .topic = "texts",
                       .turns = {model.tokenizer().decode(tokens)}});
  }
  return prompts;
}

std::vector<ComparedPrompt> in_turn(std::vector<ComparedPrompt> prompts) {
  std::map<std::pair<std::string, std::string>, std::size_t> n_of_category;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // rank within the category, and index
  order.reserve(prompts.size());
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    const ComparedPrompt& prompt = prompts[index];
    order.emplace_back(n_of_category[{prompt.set, prompt.category}]++, index);
  }
  std::sort(order.begin(), order.end());
  std::vector<ComparedPrompt> ordered;
  ordered.reserve(prompts.size());
  for (const auto& [place, index] : order) ordered.push_back(std::move(prompts[index]));
  return ordered;
}

}  // namespace outrider
