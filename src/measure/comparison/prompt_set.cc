// SPDX-License-Identifier: Apache-2.0
// Reads prompts for comparing methods, and selects some of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/checksum.h"
#include "base/files/mapped_file.h"
#include "outrider/compare_methods.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using nlohmann::json;

constexpr const char* kOperation = "read prompts";

// The categories of MT-bench (Zheng et al. 2023), which Spec-Bench includes unchanged.
constexpr std::array<std::string_view, 8> kMtBenchTopics = {
    "writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"};
constexpr std::string_view kMultiTurn = "multi-turn conversation";
// The other five kinds of prompts in Spec-Bench (Xia et al. 2024, section 4).
constexpr std::array<std::string_view, 5> kSpecBenchTopics = {"translation", "summarization", "qa",
                                                              "math_reasoning", "rag"};

bool is_mt_bench(std::string_view topic) {
  return std::find(kMtBenchTopics.begin(), kMtBenchTopics.end(), topic) != kMtBenchTopics.end();
}

// "spec_bench/question.jsonl" -> "spec_bench", "gsm8k_question.jsonl" -> "gsm8k".
std::string name_of(const std::filesystem::path& file) {
  constexpr std::string_view kCommon = "question";
  std::string name = file.stem().string();
  if (name.ends_with(kCommon)) name.resize(name.size() - kCommon.size());
  while (name.ends_with('_') || name.ends_with('-')) name.pop_back();
  if (!name.empty()) return name;
  const std::string folder = file.parent_path().filename().string();
  return folder.empty() ? std::string(kCommon) : folder;
}

// The value, or a discarded one if the text is not JSON or nests deeper than any prompt: values are
// copied and destroyed recursively, which a made-up file could exploit.
json parse_line(std::string_view text) {
  constexpr int kDeepest = 64;
  struct TooDeep {};
  const auto check_depth = [](int depth, json::parse_event_t, json&) {
    if (depth > kDeepest) throw TooDeep();
    return true;
  };
  try {
    return json::parse(text, check_depth, /*allow_exceptions=*/false);
  } catch (const TooDeep&) {
    return json::value_t::discarded;
  }
}

std::string id_of(const json& fields, int line, const std::string& place) {
  const auto id = fields.find("question_id");
  if (id == fields.end() || id->is_null()) return fmt::format("{}", line);
  if (id->is_string()) return id->get<std::string>();
  if (id->is_number_integer()) return id->dump();
  throw Error(kOperation, place, "a number or a text in \"question_id\"", id->type_name());
}

std::vector<std::string> turns_of(const json& fields, const std::string& place) {
  constexpr const char* kExpected = "a list of texts in \"turns\", at least one";
  const auto turns = fields.find("turns");
  if (turns == fields.end()) throw Error(kOperation, place, kExpected, "no such member");
  if (!turns->is_array() || turns->empty()) {
    throw Error(kOperation, place, kExpected,
                turns->is_array() ? "an empty list" : turns->type_name());
  }
  std::vector<std::string> texts;
  texts.reserve(turns->size());
  for (const json& turn : *turns) {
    if (!turn.is_string()) {
      throw Error(kOperation, place, kExpected, fmt::format("{} among them", turn.type_name()));
    }
    texts.push_back(turn.get<std::string>());
    if (texts.back().empty()) throw Error(kOperation, place, kExpected, "an empty text");
  }
  return texts;
}

ComparedPrompt read_prompt(std::string_view text, int line, const std::string& place,
                           const std::string& set) {
  const json fields = parse_line(text);
  if (!fields.is_object()) {
    throw Error(kOperation, place, "a JSON object",
                fields.is_discarded() ? "malformed JSON" : fields.type_name());
  }
  ComparedPrompt prompt{.set = set,
                        .id = id_of(fields, line, place),
                        .category = {},
                        .topic = {},
                        .turns = turns_of(fields, place)};
  const auto category = fields.find("category");
  if (category != fields.end() && !category->is_null()) {
    if (!category->is_string()) {
      throw Error(kOperation, place, "a text in \"category\"", category->type_name());
    }
    prompt.topic = category->get<std::string>();
  }
  if (prompt.topic.empty()) prompt.topic = set;
  prompt.category = prompt.topic;
  return prompt;
}

// Exactly the thirteen categories: SPEED-Bench and others share some of the names.
bool is_spec_bench(std::span<const ComparedPrompt> prompts) {
  std::set<std::string_view> topics;
  for (const ComparedPrompt& prompt : prompts) topics.insert(prompt.topic);
  const auto has = [&topics](std::string_view topic) { return topics.contains(topic); };
  return topics.size() == kMtBenchTopics.size() + kSpecBenchTopics.size() &&
         std::all_of(kMtBenchTopics.begin(), kMtBenchTopics.end(), has) &&
         std::all_of(kSpecBenchTopics.begin(), kSpecBenchTopics.end(), has);
}

}  // namespace

PromptSet read_prompt_set(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  std::string_view rest(reinterpret_cast<const char*>(mapped.bytes().data()),
                        mapped.bytes().size());
  PromptSet set{.name = name_of(file), .digest = checksum(mapped.bytes()), .prompts = {}};
  std::set<std::string> ids;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}, line {}", file.string(), line);
    ComparedPrompt prompt = read_prompt(text, line, place, set.name);
    if (!ids.insert(prompt.id).second) {
      throw Error(kOperation, place, "a \"question_id\" of its own", prompt.id + " again");
    }
    set.prompts.push_back(std::move(prompt));
  }
  if (set.prompts.empty()) {
    throw Error(kOperation, file.string(), "a JSON object a line, at least one", "none");
  }
  if (is_spec_bench(set.prompts)) {
    for (ComparedPrompt& prompt : set.prompts) {
      if (is_mt_bench(prompt.topic)) prompt.category = kMultiTurn;
    }
  }
  return set;
}

std::vector<ComparedPrompt> join_prompt_sets(std::span<const PromptSet> sets) {
  std::vector<ComparedPrompt> prompts;
  std::set<std::string_view> names;
  for (const PromptSet& set : sets) {
    if (!names.insert(set.name).second) {
      throw UsageError(kOperation, set.name, "sets of different names", "two of this");
    }
    for (const ComparedPrompt& prompt : set.prompts) {
      ComparedPrompt& joined = prompts.emplace_back(prompt);
      if (sets.size() > 1 && joined.category != set.name) {
        joined.category = fmt::format("{}: {}", set.name, joined.category);
      }
    }
  }
  return prompts;
}

std::vector<ComparedPrompt> spread_over_categories(std::span<const ComparedPrompt> prompts,
                                                   std::size_t limit) {
  if (limit >= prompts.size()) return {prompts.begin(), prompts.end()};
  // Sets may share category names without sharing prompts.
  using Category = std::pair<std::string_view, std::string_view>;
  std::vector<Category> order;  // in order of appearance
  std::map<Category, std::vector<std::size_t>> members;
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    const Category category(prompts[index].set, prompts[index].category);
    std::vector<std::size_t>& indices = members[category];
    if (indices.empty()) order.push_back(category);
    indices.push_back(index);
  }
  // Adds one more for each category in turn, until there are enough.
  std::map<Category, std::size_t> counts;
  for (std::size_t n_chosen = 0; n_chosen < limit;) {
    for (const Category& category : order) {
      if (n_chosen == limit || counts[category] == members[category].size()) continue;
      ++counts[category];
      ++n_chosen;
    }
  }
  std::vector<std::size_t> chosen;
  for (const Category& category : order) {
    const std::vector<std::size_t>& indices = members[category];
    const std::size_t n = counts[category];
    // The middles of n equal parts, since a category's ends are not representative.
    for (std::size_t part = 0; part < n; ++part) {
      chosen.push_back(indices[(2 * part + 1) * indices.size() / (2 * n)]);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<ComparedPrompt> result;
  result.reserve(chosen.size());
  for (const std::size_t index : chosen) result.push_back(prompts[index]);
  return result;
}

}  // namespace outrider
