// SPDX-License-Identifier: Apache-2.0
#include "server/requests/generation_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "server/api_error.h"

namespace outrider::server {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::size_t kMaxStops = 64;
constexpr double kMaxBias = 100;  // OpenAI's limit

// Specs can name files: only the server's own specs may.
void refuse_files(const JsonFields& fields, std::string_view name, const std::string& spec) {
  for (const std::string_view key : {"file=", "profile=", "path=", "updates="}) {
    if (spec.find(key) == std::string::npos) continue;
    fields.refuse(name, "a spec without files, or the one that the server was started with",
                  fmt::format("'{}'", spec));
  }
}

std::uint64_t random_seed() {
  // Not one generator for all requests: a seed would otherwise tell something about another
  // request's.
  std::random_device device;
  return (std::uint64_t{device()} << 32) ^ device();
}

// {"token id": bias}: -100 bans the token, as in OpenAI's documentation.
void read_logit_bias(JsonFields& body, const ServedModel& model, SamplingParams& sampling) {
  const Json* const bias = body.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) body.refuse("logit_bias", "an object", kind_of(*bias));
  for (const auto& [name, value] : bias->items()) {
    TokenId id = kNoToken;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() ||
        !model.tokenizer().has(id)) {
      body.refuse("logit_bias", "token ids of this model as names", fmt::format("'{}'", name));
    }
    const double amount = value.is_number() ? value.get<double>() : kNoLimit;
    if (!(std::abs(amount) <= kMaxBias)) {
      body.refuse("logit_bias", "numbers from -100 to 100", value.dump());
    }
    sampling.logit_bias.emplace_back(id, amount == -kMaxBias
                                             ? -std::numeric_limits<float>::infinity()
                                             : static_cast<float>(amount));
  }
}

void read_sampling(JsonFields& body, const ServedModel& model, SamplingParams& sampling) {
  const auto take = [&](double& value, std::string_view name, double min, double max) {
    if (const auto given = body.number(name, min, max)) value = *given;
  };
  constexpr double kTiny = std::numeric_limits<double>::min();
  take(sampling.temperature, "temperature", 0, kNoLimit);
  take(sampling.top_p, "top_p", kTiny, 1);
  take(sampling.min_p, "min_p", 0, 1);
  take(sampling.presence_penalty, "presence_penalty", -kNoLimit, kNoLimit);
  take(sampling.frequency_penalty, "frequency_penalty", -kNoLimit, kNoLimit);
  take(sampling.repetition_penalty, "repeat_penalty", kTiny, kNoLimit);      // llama-server's
  take(sampling.repetition_penalty, "repetition_penalty", kTiny, kNoLimit);  // vLLM's
  if (const auto top_k = body.integer("top_k", -1, std::numeric_limits<int>::max())) {
    sampling.top_k = static_cast<int>(std::max<std::int64_t>(*top_k, 0));  // vLLM writes -1 for all
  }
  read_logit_bias(body, model, sampling);
}

}  // namespace

SpeculationOptions read_speculation(JsonFields& body, const ServedModel& model, bool has_seed) {
  SpeculationOptions speculation = model.options().speculation;
  const auto& drafters = model.options().drafters;
  speculation.drafter = drafters.empty() ? "none" : drafters.front();
  bool says_verify = speculation.verify != "exact";
  std::optional<bool> adaptive;
  const Json* const asked = body.find("speculation");
  if (asked != nullptr && asked->is_boolean()) {
    if (!asked->get<bool>()) {
      speculation.drafter = "none";
      speculation.rule = "exact";
      speculation.tree.clear();
    }
  } else if (asked != nullptr) {
    JsonFields fields(*asked, "speculation");
    if (auto drafter = fields.text("drafter")) {
      if (*drafter != "none" &&
          std::find(drafters.begin(), drafters.end(), *drafter) == drafters.end()) {
        fields.refuse("drafter",
                      fmt::format("one that the server was started with (none{}{})",
                                  drafters.empty() ? "" : ", ", fmt::join(drafters, ", ")),
                      fmt::format("'{}'", *drafter));
      }
      // A tree given for another drafter does not apply.
      if (*drafter != speculation.drafter) speculation.tree.clear();
      speculation.drafter = std::move(*drafter);
    }
    const auto take_spec = [&fields](std::string_view name, const std::string& own,
                                     std::string& spec) {
      auto given = fields.text(name);
      if (!given) return;
      if (*given != own) refuse_files(fields, name, *given);
      spec = std::move(*given);
    };
    take_spec("rule", model.options().speculation.rule, speculation.rule);
    take_spec("tree", model.options().speculation.tree, speculation.tree);
    if (auto verify = fields.text("verify")) {
      speculation.verify = std::move(*verify);
      says_verify = true;
    }
    adaptive = fields.boolean("adaptive");
    fields.finish();
  }
  if (has_seed && !says_verify && speculation.rule == "exact") speculation.verify = "coupled";
  // A seed promises the same text again. With "exact" and similar verifications, this needs drafts
  // of fixed depth.
  speculation.adaptive = adaptive.value_or(!has_seed || speculation.verify == "coupled");
  return speculation;
}

GenerationFields read_generation_fields(JsonFields& body, const ServedModel& model) {
  GenerationFields fields;
  GenerateOptions& options = fields.options;
  options.sampling = model.options().sampling;
  read_sampling(body, model, options.sampling);

  // The rest of the context, if the request sets no limit.
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  std::optional<std::int64_t> max_tokens = body.integer("max_tokens", 0, kMax);
  for (const char* const name : {"max_completion_tokens", "max_output_tokens", "n_predict"}) {
    if (const auto given =
            body.integer(name, name == std::string_view("n_predict") ? -1 : 0, kMax)) {
      max_tokens = *given < 0 ? kMax : *given;
    }
  }
  options.max_tokens = static_cast<int>(max_tokens.value_or(kMax));

  options.stop_strings = body.texts("stop", kMaxStops);
  if (std::any_of(options.stop_strings.begin(), options.stop_strings.end(),
                  [](const std::string& stop) { return stop.empty(); })) {
    body.refuse("stop", "strings that are not empty", "an empty one");
  }
  options.ignore_eos = body.boolean("ignore_eos").value_or(false);
  for (const Json& id : body.list("stop_token_ids")) {
    const bool known = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                       id.get<std::int64_t>() < kMax && model.tokenizer().has(id.get<TokenId>());
    if (!known) body.refuse("stop_token_ids", "token ids of this model", id.dump());
    options.stop_tokens.push_back(id.get<TokenId>());
  }
  const auto seed = body.integer("seed");
  options.seed = seed ? static_cast<std::uint64_t>(*seed) : random_seed();
  fields.n_choices = static_cast<int>(body.integer("n", 1, kMaxChoices).value_or(1));
  fields.slot =
      static_cast<int>(body.integer("id_slot", -1, model.slots().size() - 1).value_or(-1));
  // The name in TGI and transformers.
  const double allowed = model.options().max_seconds;
  options.max_seconds =
      body.number("max_time", std::numeric_limits<double>::min(), kNoLimit).value_or(allowed);
  if (allowed > 0) options.max_seconds = std::min(options.max_seconds, allowed);
  fields.speculation = read_speculation(body, model, seed.has_value());
  return fields;
}

}  // namespace outrider::server
