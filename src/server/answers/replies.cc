// SPDX-License-Identifier: Apache-2.0
#include "server/answers/replies.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "outrider/reply_reader.h"

namespace outrider::server {
namespace {

class ReadTexts final : public TextSink {
 public:
  ReadTexts(const ReplyFormat& format, const ReplyParserOptions& options, int n_choices,
            std::shared_ptr<ReplySink> sink)
      : sink_(std::move(sink)) {
    for (int i = 0; i < n_choices; ++i) {
      readers_.emplace_back(format, options,
                            [this, i](const ReplyEvent& event) { sink_->event(i, event); });
    }
  }

  void token(int choice, const TokenEvent& event) override {
    if (!event.ends) sink_->token(choice, event);
    of(choice).push(event.text);
  }

  void end(int choice, GenerateResult result) override {
    ReplyReader& reader = of(choice);
    reader.finish(result.text);  // with the text that the engine held back to the end
    sink_->end(choice, result, reader.n_calls());
  }

  void all_ended() override { sink_->all_ended(); }
  void failed(const ApiError& error) override { sink_->failed(error); }

 private:
  ReplyReader& of(int choice) { return readers_[static_cast<std::size_t>(choice)]; }

  std::shared_ptr<ReplySink> sink_;
  std::vector<ReplyReader> readers_;
};

}  // namespace

std::shared_ptr<TextSink> reply_reader(const ReplyFormat& format, const ReplyParserOptions& options,
                                       int n_choices, std::shared_ptr<ReplySink> sink) {
  return std::make_shared<ReadTexts>(format, options, n_choices, std::move(sink));
}

}  // namespace outrider::server
