// SPDX-License-Identifier: Apache-2.0
#include "text_stream.h"

#include <exception>
#include <utility>
#include <vector>

#include "generation.h"

namespace outrider::python {
namespace {

void end_later(TextGenerator& generator) {
  try {
    if (generator.in_use()) return;
    const TextGenerator::Use use(generator);
    generator.end_left();
  } catch (...) {
    // These texts have no reader; the generator's next step continues them.
  }
}

}  // namespace

TextStream::TextStream(std::shared_ptr<TextGenerator> generator, GenerateRequest request)
    : generator_(std::move(generator)) {
  std::vector<GenerateRequest> requests;
  requests.push_back(std::move(request));
  const TextGenerator::Use use(*generator_);
  text_ = start(*generator_, std::move(requests), true).front();
}

TextStream::~TextStream() {
  if (generator_ == nullptr) return;  // moved from
  try {
    close();
  } catch (...) {
    // A destructor cannot report errors.
  }
}

std::optional<Token> TextStream::next() {
  return without_stop_iteration([this] { return next_token(); });
}

// If other texts run in the generator, or it is in use just now, a later step of theirs ends the
// text.
void TextStream::close() {
  if (text_->ended) return;
  {
    const ReleasedGil released;
    generator_->cancel(*text_);
  }
  if (generator_->in_use()) return;
  Turn& turn = generator_->shared_model().turn;
  if (turn.is_mine()) {  // within a callback of another generator's pass
    turn.leave([generator = generator_] { end_later(*generator); });
    return;
  }
  end_left(*generator_);
}

py::object TextStream::result() {
  if (!has_result()) return py::none();
  if (result_.is_none()) {
    const TextGenerator::Use use(*generator_);  // The pass that ended it may still run.
    result_ = py::cast(take_result(*generator_, *text_));
  }
  return result_;
}

std::optional<Token> TextStream::next_token() {
  const CallInProgress call_in_progress;
  const TextGenerator::Use use(*generator_);  // another thread's pass may add tokens
  while (text_->tokens.empty()) {
    if (text_->ended) {
      if (text_->error) std::rethrow_exception(std::exchange(text_->error, nullptr));
      return std::nullopt;
    }
    generator_->shared_model().turn.refuse_holder();  // the text continues
    try {
      step(*generator_);
    } catch (...) {
      finish(*generator_, {&text_, 1});
      throw;
    }
  }
  Token token = std::move(text_->tokens.front());
  text_->tokens.pop_front();
  return token;
}

}  // namespace outrider::python
