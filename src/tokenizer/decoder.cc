// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/normalizer.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

class Collect : public DecoderStage {
 public:
  explicit Collect(std::string* out) : out_(out) {}
  void push(std::string_view text) override { out_->append(text); }
  void finish() override {}

 private:
  std::string* out_;
};

// A step that needs whole tokens: for fused input it waits for the end.
class WholeTokenStage : public DecoderStage {
 public:
  WholeTokenStage(DecoderStage* next, bool fused) : next_(next), fused_(fused) {}
  void push(std::string_view text) final {
    if (fused_) {
      held_.append(text);
    } else {
      token(text);
    }
  }
  void finish() final {
    if (fused_) token(held_);
    last_words();
    next_->finish();
  }

 protected:
  virtual void token(std::string_view text) = 0;
  virtual void last_words() {}
  DecoderStage* next() { return next_; }

 private:
  DecoderStage* next_;
  bool fused_;
  std::string held_;
};

// Limit for one token, or for a text whose tokens an earlier step has joined: replacements that
// lengthen it double it again and again.
constexpr std::size_t kMaxPiece_bytes = std::size_t{1} << 25;

class Replace : public WholeTokenStage {
 public:
  Replace(DecoderStage* next, bool fused, const DecodeReplace& step)
      : WholeTokenStage(next, fused), step_(step) {}
  void token(std::string_view text) override {
    text_ = text;
    replace_all(text_, step_.pattern, step_.content, kMaxPiece_bytes, scratch_);
    next()->push(text_);
  }

 private:
  DecodeReplace step_;
  MatchScratch scratch_;
  std::string text_;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::optional<char> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

class ByteFallback : public WholeTokenStage {
 public:
  using WholeTokenStage::WholeTokenStage;
  void token(std::string_view text) override {
    if (const std::optional<char> byte = byte_of_token(text)) {
      run_.push_back(*byte);
      return;
    }
    last_words();
    next()->push(text);
  }
  void last_words() override {
    if (run_.empty()) return;
    if (is_valid_utf8(run_)) {
      next()->push(run_);
    } else {
      for (std::size_t i = 0; i < run_.size(); ++i) next()->push(kReplacementCharacter);
    }
    run_.clear();
  }

 private:
  std::string run_;
};

class Fuse : public DecoderStage {
 public:
  explicit Fuse(DecoderStage* next) : next_(next) {}
  void push(std::string_view text) override { next_->push(text); }
  void finish() override { next_->finish(); }

 private:
  DecoderStage* next_;
};

class Strip : public DecoderStage {
 public:
  Strip(DecoderStage* next, bool fused, const DecodeStrip& step)
      : next_(next), fused_(fused), step_(step), left_(step.left) {}
  void push(std::string_view text) override {
    const std::string& content = step_.content;
    if (!fused_) left_ = step_.left;
    while (left_ > 0 && text.starts_with(content)) {
      text.remove_prefix(content.size());
      --left_;
    }
    if (!text.empty()) left_ = 0;
    if (!fused_) {
      for (int i = 0; i < step_.right && text.ends_with(content); ++i) {
        text.remove_suffix(content.size());
      }
      next_->push(text);
      return;
    }
    // Holds back as many copies at the end as may have to be removed.
    held_.append(text);
    std::size_t keep = 0;
    while (keep < static_cast<std::size_t>(step_.right) * content.size() &&
           std::string_view(held_).substr(0, held_.size() - keep).ends_with(content)) {
      keep += content.size();
    }
    next_->push(std::string_view(held_).substr(0, held_.size() - keep));
    held_.erase(0, held_.size() - keep);
  }
  void finish() override { next_->finish(); }

 private:
  DecoderStage* next_;
  bool fused_;
  DecodeStrip step_;
  int left_;
  std::string held_;  // consists of copies of content
};

class Metaspace : public DecoderStage {
 public:
  Metaspace(DecoderStage* next, bool fused, const DecodeMetaspace& step)
      : next_(next), fused_(fused), step_(step) {}
  void push(std::string_view text) override {
    text_.clear();
    for (std::size_t at = 0; at < text.size();) {
      if (text.substr(at).starts_with(step_.replacement)) {
        if (!(first_ && step_.drop_first)) text_.push_back(' ');
        at += step_.replacement.size();
      } else {
        text_.push_back(text[at++]);
      }
    }
    first_ = first_ && fused_;
    next_->push(text_);
  }
  void finish() override { next_->finish(); }

 private:
  DecoderStage* next_;
  bool fused_;
  DecodeMetaspace step_;
  bool first_ = true;
  std::string text_;
};

// Converts bytes to well-formed text, holding back an unfinished character.
class Repair : public DecoderStage {
 public:
  explicit Repair(DecoderStage* next) : next_(next) {}
  void push(std::string_view bytes) override {
    held_.append(bytes);
    std::string_view rest = held_;
    text_.clear();
    while (!rest.empty()) {
      const Utf8Scan scan = scan_utf8(rest);
      text_.append(rest.substr(0, scan.n_valid));
      rest.remove_prefix(scan.n_valid);
      if (scan.n_bad == 0 || scan.unfinished) break;
      text_.append(kReplacementCharacter);
      rest.remove_prefix(scan.n_bad);
    }
    held_.erase(0, held_.size() - rest.size());
    next_->push(text_);
  }
  void finish() override {
    if (!held_.empty()) next_->push(kReplacementCharacter);
    next_->finish();
  }

 private:
  DecoderStage* next_;
  std::string held_;
  std::string text_;
};

struct OwnRepair {  // a base, so that it is constructed before the stage that ends in it
  Repair repair;
};

class ByteLevel : private OwnRepair, public WholeTokenStage {
 public:
  ByteLevel(DecoderStage* after, bool fused)
      : OwnRepair{Repair(after)}, WholeTokenStage(&repair, fused) {}
  void token(std::string_view text) override {
    bytes_.clear();
    // A token with a character outside the alphabet was added as plain text.
    next()->push(append_bytes_of(text, bytes_) ? std::string_view(bytes_) : text);
  }

 private:
  std::string bytes_;
};

class SentencePieceStage : public WholeTokenStage {
 public:
  SentencePieceStage(DecoderStage* next, bool fused, const DecodeSentencePiece& step)
      : WholeTokenStage(next, fused), step_(step), marks_(step.first_mark) {}
  void token(std::string_view text) override {
    if (step_.byte_tokens) {
      if (const std::optional<char> byte = byte_of_token(text)) {
        run_.push_back(*byte);
        pass_on(/*ended=*/false);
        return;
      }
    }
    pass_on(/*ended=*/true);
    text_.clear();
    if (marks_ != FirstMark::kStays && text.starts_with(kLowerBlock)) {
      text.remove_prefix(kLowerBlock.size());
      if (marks_ == FirstMark::kVanishes) marks_ = FirstMark::kStays;
    }
    for (std::size_t at = text.find(kLowerBlock); at != std::string_view::npos;
         at = text.find(kLowerBlock)) {
      text_.append(text.substr(0, at)).push_back(' ');
      text.remove_prefix(at + kLowerBlock.size());
    }
    write(text_.append(text));
  }
  void last_words() override { pass_on(/*ended=*/true); }

 private:
  using FirstMark = DecodeSentencePiece::FirstMark;
  void write(std::string_view text) {
    if (text.empty()) return;
    marks_ = FirstMark::kStays;
    next()->push(text);
  }
  // Passes on characters of the run of bytes. Bytes that may become a character are held back until
  // the run ends.
  void pass_on(bool ended) {
    while (!run_.empty()) {
      const Utf8Scan scan = scan_utf8(run_);
      write(std::string_view(run_).substr(0, scan.n_valid));
      run_.erase(0, scan.n_valid);
      if (scan.n_bad == 0 || (scan.unfinished && !ended)) return;
      write(kReplacementCharacter);
      run_.erase(0, 1);
    }
  }

  DecodeSentencePiece step_;
  FirstMark marks_;  // for the next token's mark
  std::string run_;
  std::string text_;
};

class Suffix : public WholeTokenStage {
 public:
  Suffix(DecoderStage* next, bool fused, const DecodeSuffix& step)
      : WholeTokenStage(next, fused), suffix_(Pattern::literal(step.suffix)) {}
  void token(std::string_view text) override {
    pass_on(" ");
    last_ = text;
  }
  void last_words() override { pass_on(""); }

 private:
  void pass_on(std::string_view replacement) {
    if (!last_) return;
    replace_all(*last_, suffix_, replacement, kMaxPiece_bytes, scratch_);
    next()->push(*last_);
    last_.reset();
  }
  Pattern suffix_;
  MatchScratch scratch_;
  std::optional<std::string> last_;
};

class Join : public DecoderStage {
 public:
  explicit Join(DecoderStage* next) : next_(next) {}
  void push(std::string_view text) override {
    if (!first_) next_->push(" ");
    first_ = false;
    next_->push(text);
  }
  void finish() override { next_->finish(); }

 private:
  DecoderStage* next_;
  bool first_ = true;
};

struct MakeStage {
  DecoderStage* next;
  bool fused;  // input arrives as parts of one token
  using Made = std::unique_ptr<DecoderStage>;
  Made operator()(const DecodeReplace& s) { return std::make_unique<Replace>(next, fused, s); }
  Made operator()(const DecodeByteFallback&) { return std::make_unique<ByteFallback>(next, fused); }
  Made operator()(const DecodeFuse&) { return std::make_unique<Fuse>(next); }
  Made operator()(const DecodeStrip& s) { return std::make_unique<Strip>(next, fused, s); }
  Made operator()(const DecodeMetaspace& s) { return std::make_unique<Metaspace>(next, fused, s); }
  Made operator()(const DecodeByteLevel&) { return std::make_unique<ByteLevel>(next, fused); }
  Made operator()(const DecodeBytes&) { return std::make_unique<Repair>(next); }
  Made operator()(const DecodeSentencePiece& s) {
    return std::make_unique<SentencePieceStage>(next, fused, s);
  }
  Made operator()(const DecodeSuffix& s) { return std::make_unique<Suffix>(next, fused, s); }
  Made operator()(const DecodeJoin&) { return std::make_unique<Join>(next); }
};

template <class Step>
bool has(const std::vector<DecoderStep>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const DecoderStep& step) { return std::holds_alternative<Step>(step); });
}

bool fuses(const DecoderStep& step) {
  return std::holds_alternative<DecodeFuse>(step) ||
         std::holds_alternative<DecodeByteLevel>(step) ||
         std::holds_alternative<DecodeBytes>(step) ||
         std::holds_alternative<DecodeSentencePiece>(step) ||
         std::holds_alternative<DecodeJoin>(step);
}

}  // namespace

DecoderRun Decoder::start() const {
  DecoderRun run;
  run.stages_.resize(steps_.size() + 1);
  run.stages_.back() = std::make_unique<Collect>(run.settled_.get());
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const bool fused =
        std::any_of(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(i), fuses);
    run.stages_[i] = std::visit(MakeStage{run.stages_[i + 1].get(), fused}, steps_[i]);
  }
  return run;
}

std::string Decoder::bytes_of(std::string_view token) const {
  std::string bytes;
  if (has<DecodeByteLevel>(steps_)) {
    if (!append_bytes_of(token, bytes)) bytes = token;
    return bytes;
  }
  if (has<DecodeBytes>(steps_)) return std::string(token);
  const bool has_byte_tokens =
      has<DecodeByteFallback>(steps_) ||
      std::any_of(steps_.begin(), steps_.end(), [](const DecoderStep& step) {
        const auto* const pieces = std::get_if<DecodeSentencePiece>(&step);
        return pieces != nullptr && pieces->byte_tokens;
      });
  if (has_byte_tokens) {
    if (const std::optional<char> byte = byte_of_token(token)) return {*byte};
  }
  // Between two letters, so that treatment of a text's ends applies to them only. If a blank goes
  // between all tokens, the one after belongs to the next token.
  constexpr std::string_view kLetter = "x";
  DecoderRun run = start();
  for (const std::string_view part : {kLetter, token, kLetter}) run.push(part, bytes);
  run.finish(bytes);
  if (has<DecodeJoin>(steps_) && bytes.ends_with(" x")) bytes.erase(bytes.size() - 2, 1);
  if (bytes.size() < 2 || !bytes.starts_with(kLetter) || !bytes.ends_with(kLetter)) return {};
  return bytes.substr(1, bytes.size() - 2);
}

void DecoderRun::push(std::string_view token, std::string& out) {
  stages_.front()->push(token);
  out.append(*settled_);
  settled_->clear();
}

void DecoderRun::finish(std::string& out) {
  stages_.front()->finish();
  out.append(*settled_);
  settled_->clear();
}

}  // namespace outrider
