// SPDX-License-Identifier: Apache-2.0
#include "reply/reply_parser.h"

#include <utility>

#include "reply/json_words.h"

namespace outrider {
namespace {

// Precedes the recipient of a message.
constexpr std::string_view kRecipient = "to=";

std::vector<std::string> content_markers(const ReplyFormat& format) {
  std::vector<std::string> markers = format.calls.begins;
  const ChannelFormat& channels = format.channels;
  if (!channels.empty()) {
    markers.insert(markers.end(), channels.ends.begin(), channels.ends.end());
    markers.insert(markers.end(), {channels.start, channels.channel});
    return markers;
  }
  for (const std::string& marker :
       {format.reasoning.begin, format.answer.begin, format.answer.end}) {
    if (!marker.empty()) markers.push_back(marker);
  }
  return markers;
}

std::vector<std::string> reasoning_markers(const ReplyFormat& format) {
  if (!format.channels.empty()) return content_markers(format);
  return {format.reasoning.end, format.reasoning.begin};
}

// The word after the last `mark` of a header; empty if there is none.
std::string_view word_behind(std::string_view header, std::string_view mark) {
  const std::size_t at = header.rfind(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of(" \t\r\n<"));
}

// The form without the parts that the caller does not want separated.
ReplyFormat wanted(ReplyFormat format, const ReplyParserOptions& options) {
  if (!options.calls || format.calls.syntax == CallSyntax::none) format.calls = {};
  if (!options.reasoning) format.reasoning = {};
  return format;
}

}  // namespace

ReplyParser::ReplyParser(ReplyFormat format, ReplyParserOptions options, Callback on_event)
    : format_(wanted(std::move(format), options)),
      options_(std::move(options)),
      on_event_(std::move(on_event)),
      markers_(content_markers(format_)),
      reasoning_markers_(reasoning_markers(format_)) {
  if (!options_.tools) options_.tools = std::make_shared<const ToolSet>();
  kinds_.assign(format_.calls.begins.size(), Marker::calls);
  const bool in_messages = !format_.channels.empty();
  if (in_messages) {
    kinds_.insert(kinds_.end(), format_.channels.ends.size(), Marker::message_end);
    kinds_.insert(kinds_.end(), 2, Marker::header);
    mode_ = Mode::header;
  } else if (!format_.reasoning.begin.empty()) {
    kinds_.push_back(Marker::reasoning);
  }
  if (!format_.answer.begin.empty()) kinds_.push_back(Marker::answer_begin);
  if (!format_.answer.end.empty()) kinds_.push_back(Marker::answer_end);
  if (format_.calls.may_be_bare) {
    bare_begin_ = format_.calls.syntax == CallSyntax::python ? '[' : '{';
  }
  calls_may_follow_ =
      in_messages || format_.calls.syntax != CallSyntax::none || !format_.answer.end.empty();
  if (options_.in_reasoning && !format_.reasoning.end.empty()) {
    mode_ = Mode::reasoning;
    drops_blanks_ = true;
  }
}

void ReplyParser::push(std::string_view text) {
  for (const char byte : text) {
    // At most twice: a byte that no longer belongs to calls is content.
    while (!take(byte)) {
    }
  }
  flush();
}

void ReplyParser::finish() {
  if (std::exchange(finished_, true)) return;
  if (mode_ == Mode::calls) break_section();
  if (mode_ == Mode::header) break_header();
  const bool reasons = mode_ == Mode::reasoning;
  const auto kind = reasons ? ReplyEvent::Kind::reasoning : ReplyEvent::Kind::content;
  add_text(kind, (reasons ? reasoning_markers_ : markers_).release());
  if (!drops_blanks_) emit(kind, blanks_, false);
  flush();
}

bool ReplyParser::take(char byte) {
  switch (mode_) {
    case Mode::header:
      return take_in_header(byte);
    case Mode::content:
      return take_in_content(byte);
    case Mode::calls:
      return take_in_calls(byte);
    default:
      take_in_reasoning(byte);
      return true;
  }
}

bool ReplyParser::take_in_header(char byte) {
  raw_ += byte;
  if (raw_.ends_with(format_.channels.message)) {
    read_header();
  } else if (!may_be_header()) {
    break_header();
  }
  return true;
}

void ReplyParser::begin_header(std::string_view marker) {
  mode_ = Mode::header;
  raw_ = marker;
}

// It begins with a marker or, since the prompt may have begun the first one, with a recipient.
bool ReplyParser::may_be_header() const {
  if (raw_.size() > kLongestHeader_bytes) return false;
  const std::string_view words = without_blanks(raw_);
  const ChannelFormat& channels = format_.channels;
  for (const std::string_view begin :
       {std::string_view(channels.start), std::string_view(channels.channel), kRecipient}) {
    if (words.starts_with(begin) || begin.starts_with(words)) return true;
  }
  return false;
}

void ReplyParser::read_header() {
  const ChannelFormat& channels = format_.channels;
  std::string_view name = word_behind(raw_, kRecipient);
  const bool reasons = word_behind(raw_, channels.channel) == channels.reasoning;
  if (name.starts_with(channels.functions)) name.remove_prefix(channels.functions.size());
  stand_behind_section();
  if (is_call_name(name) && format_.calls.syntax == CallSyntax::channels) {
    mode_ = Mode::calls;
    n_ended_in_section_ = 0;
    reader_ = make_channel_call(std::string(name), channels.ends);
    return;
  }
  const bool is_reasoning = reasons && name.empty() && !format_.reasoning.end.empty();
  mode_ = is_reasoning ? Mode::reasoning : Mode::content;
  if (is_reasoning ? has_reasoning_ : has_content_) blanks_ = "\n\n";
  // A message that is not wanted separately becomes text, with its header.
  const std::string header = std::exchange(raw_, std::string());
  if (!is_reasoning && (reasons || !name.empty())) {
    add_text(ReplyEvent::Kind::content, header);
  }
}

// The bytes read so far are not a header.
void ReplyParser::break_header() {
  mode_ = Mode::content;
  std::string_view text = raw_;
  text.remove_suffix(markers_.resume_behind(text));
  add_text(ReplyEvent::Kind::content, text);
  raw_.clear();
}

bool ReplyParser::take_in_content(char byte) {
  if (byte == bare_begin_ && at_boundary_ && markers_.held().empty()) {
    begin_section(0, true);
    return false;
  }
  freed_.clear();
  const std::optional<std::size_t> marker = markers_.push(byte, freed_);
  add_text(ReplyEvent::Kind::content, freed_);
  if (marker) found(*marker);
  return true;
}

void ReplyParser::found(std::size_t marker) {
  switch (kinds_[marker]) {
    case Marker::calls:
      return begin_section(marker, false);
    case Marker::reasoning:
      if (!at_boundary_) break;
      mode_ = Mode::reasoning;
      blanks_.clear();
      drops_blanks_ = true;
      return;
    case Marker::answer_begin:
      if (!at_boundary_) break;
      in_answer_ = true;
      return stand_behind_section();
    case Marker::answer_end:
      if (!in_answer_) break;
      in_answer_ = false;
      return stand_behind_section();
    case Marker::message_end:
      begin_header({});
      return stand_behind_section();
    case Marker::header:
      return begin_header(markers_.markers()[marker]);
  }
  add_text(ReplyEvent::Kind::content, markers_.markers()[marker]);
}

void ReplyParser::take_in_reasoning(char byte) {
  freed_.clear();
  const std::optional<std::size_t> marker = reasoning_markers_.push(byte, freed_);
  add_text(ReplyEvent::Kind::reasoning, freed_);
  if (!marker) return;
  if (!format_.channels.empty()) {
    found(*marker);
  } else if (*marker == 0) {
    mode_ = Mode::content;
    stand_behind_section();
  } else if (!drops_blanks_) {  // at the beginning it repeats the prompt's
    add_text(ReplyEvent::Kind::reasoning, format_.reasoning.begin);
  }
}

void ReplyParser::begin_section(std::size_t begin, bool is_bare) {
  mode_ = Mode::calls;
  n_ended_in_section_ = 0;
  raw_ = is_bare ? std::string() : format_.calls.begins[begin];
  reader_ = make_call_reader({.format = &format_.calls,
                              .tools = options_.tools.get(),
                              .begin = begin,
                              .is_bare = is_bare});
}

bool ReplyParser::take_in_calls(char byte) {
  if (raw_.size() >= kLongestCall_bytes) {
    break_section();
    return false;
  }
  raw_ += byte;  // before the reader sees it: a call that this byte ends leaves nothing
  switch (reader_->push(byte, *this)) {
    case CallReader::Step::more:
      return true;
    case CallReader::Step::whole:
      if (n_ended_in_section_ > 0) raw_.clear();
      return true;
    case CallReader::Step::stop:
      raw_.pop_back();
      break_section();
      return false;
    case CallReader::Step::done:
      break;
  }
  if (n_ended_in_section_ == 0) {  // markers without a call
    break_section();
    return true;
  }
  raw_.clear();
  mode_ = format_.channels.empty() ? Mode::content : Mode::header;
  stand_behind_section();
  return true;
}

// The bytes read since the last complete call are not a call.
void ReplyParser::break_section() {
  mode_ = Mode::content;
  if (n_ended_in_section_ > 0) {
    stand_behind_section();
  } else {
    at_boundary_ = false;
  }
  const bool had_begun = std::exchange(call_is_open_, false);
  if (had_begun) {
    flush();
    on_event_({.kind = ReplyEvent::Kind::call_end, .call = n_calls_ - 1, .complete = false});
  }
  std::string_view text = raw_;
  text.remove_suffix(markers_.resume_behind(text));
  add_text(ReplyEvent::Kind::content, text, had_begun);
  raw_.clear();
}

void ReplyParser::stand_behind_section() {
  blanks_.clear();
  drops_blanks_ = true;
  at_boundary_ = true;
}

void ReplyParser::begin_call(std::string_view name, std::string_view id) {
  raw_.insert(0, std::exchange(blanks_, std::string()));  // in case it turns out not to be a call
  flush();
  call_is_open_ = true;
  on_event_({.kind = ReplyEvent::Kind::call_begin, .call = n_calls_++, .name = name, .id = id});
}

void ReplyParser::add_arguments(std::string_view json) {
  emit(ReplyEvent::Kind::call_arguments, json, false);
}

void ReplyParser::end_call(std::string_view id) {
  flush();
  call_is_open_ = false;
  ++n_ended_in_section_;
  raw_.clear();
  on_event_({.kind = ReplyEvent::Kind::call_end, .call = n_calls_ - 1, .id = id});
}

// White space is held back until the next text shows whether it belongs to a marker.
void ReplyParser::add_text(ReplyEvent::Kind kind, std::string_view text, bool of_broken_call) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  const bool waits = kind == ReplyEvent::Kind::reasoning || calls_may_follow_;
  if (first == std::string_view::npos) {
    if (!waits && !at_boundary_) {
      emit(kind, text, of_broken_call);
    } else if (!drops_blanks_) {
      blanks_ += text;
    }
    return;
  }
  if (drops_blanks_) text.remove_prefix(first);
  drops_blanks_ = false;
  at_boundary_ = false;
  (kind == ReplyEvent::Kind::reasoning ? has_reasoning_ : has_content_) = true;
  const std::size_t n = waits ? text.find_last_not_of(kBlanks) + 1 : text.size();
  emit(kind, blanks_, of_broken_call);
  emit(kind, text.substr(0, n), of_broken_call);
  blanks_ = text.substr(n);
}

void ReplyParser::emit(ReplyEvent::Kind kind, std::string_view text, bool of_broken_call) {
  if (text.empty()) return;
  if (kind != pending_kind_ || of_broken_call != pending_of_broken_call_) flush();
  pending_kind_ = kind;
  pending_of_broken_call_ = of_broken_call;
  pending_ += text;
}

void ReplyParser::flush() {
  if (pending_.empty()) return;
  ReplyEvent event{.kind = pending_kind_, .text = pending_};
  if (pending_kind_ == ReplyEvent::Kind::call_arguments) event.call = n_calls_ - 1;
  event.of_broken_call = pending_of_broken_call_;
  on_event_(event);
  pending_.clear();
}

}  // namespace outrider
