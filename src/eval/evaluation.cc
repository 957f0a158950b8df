// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "eval/along_texts/text_likelihood.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"

namespace outrider::eval {
namespace {

using nlohmann::ordered_json;

std::uint64_t seed_of(std::uint64_t seed, int item, int sample) {
  const auto block =
      philox4x32({static_cast<std::uint32_t>(item), static_cast<std::uint32_t>(sample), 0, 0},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return block[0] | std::uint64_t{block[1]} << 32;
}

bool is_cancelled(const GenerateOptions& options) {
  return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
}

Record start_record(const Question& question) {
  Record record;
  record.number = question.item.number;
  record.place = question.item.place;
  record.slice = question.slice;
  record.references = question.references;
  return record;
}

void judge(const Judged& judged, const Metrics& metrics, Record& record) {
  for (const auto& metric : metrics) {
    const std::vector<double> counts = metric->count(judged);
    const std::vector<double> scores = metric->scores(counts);
    const std::vector<std::string_view> names = metric->score_names();
    for (std::size_t s = 0; s < scores.size(); ++s) {
      record.scores[std::string(names[s])] = scores[s];
    }
    record.counts[std::string(metric->name())] = counts;
  }
}

// An error about one item names it.
[[noreturn]] void fail_at(const Question& question, const Error& error) {
  throw ItemError("evaluate item", question.item.place, error.what());
}

SliceSummary summarize_slice(std::string name, const std::vector<const Record*>& records,
                             const Metrics& metrics, const BootstrapOptions& options) {
  SliceSummary slice;
  slice.name = std::move(name);
  slice.n_items = static_cast<int>(records.size());
  for (const Record* record : records) slice.effort.add(record->effort);
  if (records.empty()) return slice;
  for (const auto& metric : metrics) {
    std::vector<double> counts;
    std::vector<double> sums(metric->n_counts(), 0.0);
    for (const Record* record : records) {
      const auto found = record->counts.find(std::string(metric->name()));
      if (found == record->counts.end() || found->second.size() != sums.size()) {
        throw Error("summarize", record->place, fmt::format("counts of {}", metric->name()),
                    "a record without them");
      }
      counts.insert(counts.end(), found->second.begin(), found->second.end());
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += found->second[c];
    }
    const auto score = [&metric](std::span<const double> s) { return metric->scores(s); };
    const std::vector<double> values = score(sums);
    const std::vector<Interval> intervals =
        bootstrap_intervals(counts, sums.size(), score, options);
    const std::vector<std::string_view> names = metric->score_names();
    for (std::size_t s = 0; s < values.size(); ++s) {
      slice.scores.push_back({.metric = std::string(metric->name()),
                              .name = std::string(names[s]),
                              .value = values[s],
                              .interval = intervals[s],
                              .larger_is_better = metric->larger_is_better()});
    }
  }
  return slice;
}

ordered_json to_json(const SliceSummary& slice) {
  ordered_json scores = ordered_json::object();
  for (const ScoreSummary& score : slice.scores) {
    scores[score.name] = {
        {"value", score.value}, {"low", score.interval.low}, {"high", score.interval.high}};
  }
  ordered_json object;
  object["items"] = slice.n_items;
  object["scores"] = std::move(scores);
  object["stats"] = to_json(slice.effort);
  return object;
}

std::string line_of(const ScoreSummary& score) {
  return fmt::format("  {:<14}{:>10.3f}   [{:.3f}, {:.3f}]\n", score.name, score.value,
                     score.interval.low, score.interval.high);
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The text as a continuation of its prompt: SentencePiece decoders remove a blank at the beginning
// of a text, but a program needs its indentation.
std::string behind_prompt(const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                          const GenerateResult& result) {
  std::string before;
  std::string behind;
  const auto decoding = tokenizer.start_decoding(false);
  for (const TokenId id : prompt) decoding->push(id, before);
  for (const TokenId id : result.ids) decoding->push(id, behind);
  decoding->finish(behind);
  const std::string alone = tokenizer.decode(result.ids);
  if (behind.size() != alone.size() + 1 || !behind.starts_with(' ') || !behind.ends_with(alone)) {
    return result.text;
  }
  return " " + result.text;
}

}  // namespace

std::optional<Record> ask(Generator& generator, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options) {
  const auto answerer = [&generator](const GenerateRequest& request) {
    return std::move(generator.generate({&request, 1}).front());
  };
  return ask(answerer, model, question, metrics, options);
}

std::optional<Record> ask(const Answerer& answerer, const Model& model, const Question& question,
                          const Metrics& metrics, const AskOptions& options) {
  Record record = start_record(question);
  try {
    for (int sample = 0; sample < options.n_samples; ++sample) {
      GenerateOptions generate = options.generate;
      generate.seed = seed_of(options.generate.seed, question.item.number, sample);
      const GenerateRequest request =
          options.request ? options.request(question.prompt, generate)
                          : GenerateRequest{.prompt = model.tokenizer().encode(
                                                question.prompt, generate.add_special),
                                            .options = generate};
      const GenerateResult result = answerer(request);
      if (result.finish_reason == FinishReason::cancelled) return std::nullopt;
      // An encoder-decoder's text continues nothing.
      record.texts.push_back(model.summary().n_encoder_layers > 0
                                 ? result.text
                                 : behind_prompt(model.tokenizer(), request.prompt, result));
      record.finishes.emplace_back(result.finish_reason == FinishReason::stop ? "stop" : "length");
      record.effort.add(result.statistics, request.prompt.size());
    }
    judge({.item = question.item, .texts = record.texts, .references = question.references},
          metrics, record);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    fail_at(question, error);
  }
  return record;
}

std::optional<Record> read(const Model& model, const Question& question, const Metrics& metrics,
                           const AskOptions& options) {
  Record record = start_record(question);
  try {
    const TextLikelihood likelihood = likelihood_of(
        model, question.prompt, [&options] { return is_cancelled(options.generate); });
    if (is_cancelled(options.generate)) return std::nullopt;
    record.effort.prompt_tokens = likelihood.n_tokens;
    judge({.item = question.item,
           .texts = {},
           .references = question.references,
           .likelihood = &likelihood},
          metrics, record);
  } catch (const Error& error) {
    fail_at(question, error);
  }
  return record;
}

Summary summarize(std::span<const Record> records, const Metrics& metrics,
                  const BootstrapOptions& options) {
  std::vector<const Record*> all;
  std::map<std::string, std::vector<const Record*>> by_slice;
  std::set<std::size_t> n_references;
  for (const Record& record : records) {
    all.push_back(&record);
    if (!record.slice.empty()) by_slice[record.slice].push_back(&record);
    n_references.insert(record.references.size());
  }
  Summary summary;
  summary.all = summarize_slice("", all, metrics, options);
  for (const auto& entry : by_slice) {
    summary.slices.push_back(summarize_slice(entry.first, entry.second, metrics, options));
  }
  for (const auto& metric : metrics) {
    const std::size_t n = n_references.size() == 1 ? *n_references.begin() : 0;
    summary.signatures.emplace_back(metric->name(), metric->signature(n));
  }
  return summary;
}

ordered_json to_json(const Effort& effort) {
  const auto emitted = static_cast<double>(effort.emitted);
  ordered_json stats;
  stats["prompt_tokens"] = effort.prompt_tokens;
  stats["emitted"] = effort.emitted;
  stats["target_passes"] = effort.target_passes;
  stats["drafter_passes"] = effort.drafter_passes;
  stats["drafted"] = effort.drafted;
  stats["accepted"] = effort.accepted;
  stats["tau"] = ratio(emitted, static_cast<double>(effort.target_passes));
  stats["acceptance_rate"] =
      ratio(static_cast<double>(effort.accepted), static_cast<double>(effort.drafted));
  stats["rule_kl"] = effort.rule_kl;  // infinity, which JSON lacks, becomes null
  stats["rule_tv"] = effort.rule_tv;
  stats["deferral_rate"] = ratio(effort.deferral, emitted);
  stats["prefill_seconds"] = effort.prefill_seconds;
  stats["decode_seconds"] = effort.decode_seconds;
  stats["tokens_per_second"] = ratio(emitted, effort.decode_seconds);
  stats["draft_seconds"] = effort.draft_seconds;
  stats["verify_seconds"] = effort.verify_seconds;
  return stats;
}

ordered_json to_json(const Summary& summary) {
  ordered_json object = to_json(summary.all);
  if (!summary.slices.empty()) {
    ordered_json slices;
    for (const SliceSummary& slice : summary.slices) slices[slice.name] = to_json(slice);
    object["slices"] = std::move(slices);
  }
  ordered_json signatures = ordered_json::object();
  for (const auto& [metric, signature] : summary.signatures) signatures[metric] = signature;
  object["signatures"] = std::move(signatures);
  return object;
}

std::string to_text(const Summary& summary) {
  std::string text;
  for (const ScoreSummary& score : summary.all.scores) text += line_of(score);
  for (const SliceSummary& slice : summary.slices) {
    text += fmt::format("{} ({} items)\n", slice.name, slice.n_items);
    for (const ScoreSummary& score : slice.scores) text += line_of(score);
    if (slice.effort.target_passes > 0) {
      text += fmt::format("  {:<14}{:>10.3f}\n", "tau",
                          ratio(static_cast<double>(slice.effort.emitted),
                                static_cast<double>(slice.effort.target_passes)));
    }
  }
  for (const auto& [metric, signature] : summary.signatures) {
    text += fmt::format("{}: {}\n", metric, signature);
  }
  const Effort& effort = summary.all.effort;
  if (effort.emitted > 0) {
    const auto emitted = static_cast<double>(effort.emitted);
    text += fmt::format("{} tokens, {} passes of the target, tau {:.3f}", effort.emitted,
                        effort.target_passes,
                        ratio(emitted, static_cast<double>(effort.target_passes)));
    if (effort.drafted > 0) {
      text += fmt::format(
          ", {:.1f}% of {} drafted accepted",
          100 * ratio(static_cast<double>(effort.accepted), static_cast<double>(effort.drafted)),
          effort.drafted);
    }
    if (effort.rule_kl > 0 || effort.rule_tv > 0 || effort.deferral > 0) {
      text += fmt::format(", a token: KL {:.4f}, TV {:.4f}, deferral {:.3f}",
                          ratio(effort.rule_kl, emitted), ratio(effort.rule_tv, emitted),
                          ratio(effort.deferral, emitted));
    }
    text += fmt::format(", {:.1f} tokens/s\n", ratio(emitted, effort.decode_seconds));
  }
  return text;
}

}  // namespace outrider::eval
