// SPDX-License-Identifier: Apache-2.0
#include "generate_arguments.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "mask.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::python {
namespace {

using Setter = void (*)(GenerateArguments& arguments, const py::handle& value);

struct Keyword {
  std::string_view name;
  Setter set;
};

template <auto Member, int kLowest>
void set_integer(GenerateArguments& arguments, const py::handle& value, const char* name) {
  arguments.options.*Member = static_cast<int>(
      read_integer(value, "generate", name, kLowest, std::numeric_limits<int>::max()));
}

template <auto Member>
void set_option(GenerateArguments& arguments, const py::handle& value) {
  using Type = std::remove_reference_t<decltype(arguments.options.*Member)>;
  arguments.options.*Member = py::cast<Type>(value);
}

void set_stop(GenerateArguments& arguments, const py::handle& value) {
  if (value.is_none()) return;
  if (py::isinstance<py::str>(value)) {
    arguments.options.stop_strings = {read_text(value, "generate", "stop")};
    return;
  }
  if (!py::isinstance<py::sequence>(value) || is_bytes(value)) {
    throw py::type_error("stop: expected a text or a list of texts");
  }
  for (const py::object text : py::reinterpret_borrow<py::sequence>(value)) {
    arguments.options.stop_strings.push_back(read_text(text, "generate", "stop"));
  }
}

void set_seed(GenerateArguments& arguments, const py::handle& value) {
  if (value.is_none()) return;
  if (!py::isinstance<py::sequence>(value) && !py::isinstance<py::array>(value)) {
    arguments.seeds = {read_unsigned(value, "generate", "seed")};
    return;
  }
  if (is_bytes(value) || py::isinstance<py::str>(value)) {
    throw py::type_error("seed: expected an integer or a list of integers");
  }
  arguments.seeds.clear();
  for (const py::handle seed : py::reinterpret_borrow<py::object>(value)) {
    arguments.seeds.push_back(read_unsigned(seed, "generate", "seed"));
  }
}

void set_grammar(GenerateArguments& arguments, const py::handle& value) {
  if (!value.is_none()) arguments.options.grammar = py::cast<std::shared_ptr<Grammar>>(value);
}

void set_max_seconds(GenerateArguments& arguments, const py::handle& value) {
  const auto seconds = py::cast<double>(value);
  if (std::isnan(seconds) || seconds < 0) {
    throw UsageError("generate", "max_seconds", "0 (no bound) or more", std::to_string(seconds));
  }
  arguments.options.max_seconds = std::isinf(seconds) ? 0 : seconds;
}

const Keyword kKeywords[] = {
    {"max_tokens",
     [](GenerateArguments& arguments, const py::handle& value) {
       set_integer<&GenerateOptions::max_tokens, 0>(arguments, value, "max_tokens");
     }},
    {"seed", set_seed},
    {"stop", set_stop},
    {"stop_tokens",
     [](GenerateArguments& arguments, const py::handle& value) {
       arguments.options.stop_tokens = value.is_none() ? std::vector<TokenId>() : read_ids(value);
     }},
    {"ignore_eos", set_option<&GenerateOptions::ignore_eos>},
    {"add_special", set_option<&GenerateOptions::add_special>},
    {"keep_logits", set_option<&GenerateOptions::keep_logits>},
    {"log_probs",
     [](GenerateArguments& arguments, const py::handle& value) {
       set_integer<&GenerateOptions::log_probs, -1>(arguments, value, "log_probs");
     }},
    {"grammar", set_grammar},
    {"mask",
     [](GenerateArguments& arguments, const py::handle& value) {
       arguments.options.mask = to_mask(value, *arguments.model);
     }},
    {"max_seconds", set_max_seconds},
    {"encoder_prompt",
     [](GenerateArguments& arguments, const py::handle& value) {
       arguments.encoder_prompt = py::reinterpret_borrow<py::object>(value);
     }},
    {"on_token",
     [](GenerateArguments& arguments, const py::handle& value) {
       arguments.on_token = py::reinterpret_borrow<py::object>(value);
     }},
};

// A list of prompts, each a text or ids.
std::vector<py::object> list_prompts(const py::object& prompts, bool& is_one) {
  is_one = py::isinstance<py::str>(prompts) || is_ids(prompts);
  if (is_one) return {prompts};
  const bool is_list = py::isinstance<py::array>(prompts)
                           ? py::reinterpret_borrow<py::array>(prompts).ndim() > 0
                           : py::isinstance<py::sequence>(prompts);
  if (!is_list || is_bytes(prompts) || py::len(prompts) == 0) {
    throw UsageError("generate", "prompt", "a text, ids, or a list of texts or ids",
                     is_list ? std::string("an empty list or bytes")
                             : std::string(py::str(py::type::of(prompts))));
  }
  std::vector<py::object> list;
  for (const py::handle prompt : prompts) {
    list.push_back(py::reinterpret_borrow<py::object>(prompt));
  }
  return list;
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, const py::handle& prompt,
                            bool add_special) {
  if (!py::isinstance<py::str>(prompt)) return read_ids(prompt);
  const std::string text = read_text(prompt, "generate", "prompt");
  const ReleasedGil released;
  return tokenizer.encode(text, add_special);
}

}  // namespace

GenerateArguments read_arguments(const Model& model, const py::object& sampling,
                                 const py::kwargs& keywords) {
  GenerateArguments arguments;
  arguments.model = &model;
  if (!sampling.is_none()) {
    if (!py::isinstance<SamplingParams>(sampling)) {
      throw py::type_error("sampling: a value of type " +
                           std::string(py::str(py::type::of(sampling))));
    }
    arguments.options.sampling = py::cast<SamplingParams>(sampling);
  }
  for (const auto& [key, value] : keywords) {
    const std::string name = read_text(key, "generate", "keyword");
    const Keyword* known = nullptr;
    for (const Keyword& keyword : kKeywords) {
      if (keyword.name == name) known = &keyword;
    }
    if (known == nullptr) {
      std::string names;
      for (const Keyword& keyword : kKeywords) {
        names += (names.empty() ? "" : " ") + std::string(keyword.name);
      }
      throw UsageError("generate", "keyword", "one of " + names, name);
    }
    try {
      known->set(arguments, value);
    } catch (const py::cast_error&) {
      throw py::type_error(name + ": a value of type " + std::string(py::str(py::type::of(value))));
    }
  }
  return arguments;
}

std::vector<std::string> argument_names() {
  std::vector<std::string> names;
  for (const Keyword& keyword : kKeywords) names.emplace_back(keyword.name);
  return names;
}

std::vector<GenerateRequest> make_requests(const Model& model, const py::object& prompts,
                                           const GenerateArguments& arguments, bool& is_one) {
  const std::vector<py::object> list = list_prompts(prompts, is_one);
  if (arguments.seeds.size() != 1 && arguments.seeds.size() != list.size()) {
    throw UsageError("generate", "seed", "one, or one for each prompt",
                     std::to_string(arguments.seeds.size()) + " for " +
                         std::to_string(list.size()) + " prompts");
  }
  const Tokenizer& tokenizer = model.tokenizer();
  const bool has_encoder_prompt = !arguments.encoder_prompt.is_none();
  if (has_encoder_prompt && !is_one) {
    throw UsageError("generate", "encoder_prompt", "one prompt", "a list of prompts");
  }
  std::vector<GenerateRequest> requests;
  for (std::size_t i = 0; i < list.size(); ++i) {
    GenerateRequest request{.options = arguments.options};
    request.options.seed = arguments.seeds[arguments.seeds.size() == 1 ? 0 : i];
    // With an encoder prompt, `prompt` is the beginning of the decoder's text and gets no special
    // tokens.
    const bool add_special = request.options.add_special;
    request.prompt = encode(tokenizer, list[i], add_special && !has_encoder_prompt);
    if (has_encoder_prompt) {
      request.encoder_prompt = encode(tokenizer, arguments.encoder_prompt, add_special);
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace outrider::python
