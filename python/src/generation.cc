// SPDX-License-Identifier: Apache-2.0
#include "generation.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "outrider/model.h"

namespace outrider::python {

std::vector<std::shared_ptr<Text>> start(TextGenerator& generator,
                                         std::vector<GenerateRequest> requests, bool keeps_tokens) {
  check_signals();
  const ReleasedGil released;
  return generator.start(std::move(requests), keeps_tokens);
}

void end_left(TextGenerator& generator) {
  const TextGenerator::Use use(generator);
  const ReleasedGil released;
  generator.end_left();
}

void finish(TextGenerator& generator, std::span<const std::shared_ptr<Text>> texts) {
  const ReleasedGil released;
  generator.finish(texts);
}

void step(TextGenerator& generator) {
  {
    const ReleasedGil released;
    generator.step();
  }
  check_signals();
}

Result take_result(TextGenerator& generator, Text& text) {
  return {std::move(text.result), generator.shared_model().model->summary().vocabulary_size};
}

std::vector<Result> run(TextGenerator& generator, std::vector<GenerateRequest> requests,
                        const py::object& on_token, bool is_one) {
  const CallInProgress call_in_progress;
  const bool tells = !on_token.is_none();
  const TextGenerator::Use use(generator);
  const std::vector<std::shared_ptr<Text>> texts = start(generator, std::move(requests), tells);
  const auto tell = [&](Text& text, std::size_t index) {
    while (!text.tokens.empty()) {
      Token token = std::move(text.tokens.front());
      text.tokens.pop_front();
      if (is_one) {
        call(on_token, std::move(token));
      } else {
        call(on_token, std::move(token), index);
      }
    }
  };
  const auto is_done = [](const auto& text) { return text->ended.load(); };
  try {
    while (!std::all_of(texts.begin(), texts.end(), is_done)) {
      step(generator);
      for (std::size_t i = 0; tells && i < texts.size(); ++i) tell(*texts[i], i);
      for (const auto& text : texts) {
        if (text->error) std::rethrow_exception(text->error);
      }
    }
  } catch (...) {
    finish(generator, texts);
    throw;
  }
  {
    const ReleasedGil released;
    generator.end_left();  // streams that other threads closed meanwhile
  }
  std::vector<Result> results;
  for (const auto& text : texts) results.push_back(take_result(generator, *text));
  return results;
}

}  // namespace outrider::python
