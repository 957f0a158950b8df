#include "server/replies.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider::server {
namespace {

class ReplyReader final : public TextSink {
 public:
  ReplyReader(const ReplyFormat& format, const ReplyParserOptions& options, int n_choices,
              std::shared_ptr<ReplySink> sink)
      : sink_(std::move(sink)), choices_(static_cast<std::size_t>(n_choices)) {
    for (int i = 0; i < n_choices; ++i) {
      of(i).parser = std::make_unique<ReplyParser>(
          format, options, [this, i](const ReplyEvent& event) { pass_on(i, event); });
    }
  }

  void token(int choice, const TokenEvent& event) override {
    Choice& one = of(choice);
    if (!event.ends) sink_->token(choice, event);
    one.n_read += event.text.size();
    one.parser->push(event.text);
  }

  void end(int choice, GenerateResult result) override {
    Choice& one = of(choice);
    // Text that the engine held back until the end.
    const std::string_view text = result.text;
    one.parser->push(text.substr(std::min(one.n_read, text.size())));
    one.parser->finish();
    sink_->end(choice, result, one.n_calls);
  }

  void all_ended() override { sink_->all_ended(); }
  void failed(const ApiError& error) override { sink_->failed(error); }

 private:
  struct Choice {
    std::unique_ptr<ReplyParser> parser;
    std::size_t n_read = 0;  // bytes of the text read so far
    int n_calls = 0;
  };
  Choice& of(int choice) { return choices_[static_cast<std::size_t>(choice)]; }

  void pass_on(int choice, const ReplyEvent& event) {
    if (event.kind == ReplyEvent::Kind::call_end && event.complete) ++of(choice).n_calls;
    sink_->event(choice, event);
  }

  std::shared_ptr<ReplySink> sink_;
  std::vector<Choice> choices_;
};

}  // namespace

std::shared_ptr<TextSink> reply_reader(const ReplyFormat& format, const ReplyParserOptions& options,
                                       int n_choices, std::shared_ptr<ReplySink> sink) {
  return std::make_shared<ReplyReader>(format, options, n_choices, std::move(sink));
}

}  // namespace outrider::server
