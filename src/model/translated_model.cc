// SPDX-License-Identifier: Apache-2.0
#include "model/translated_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read in another vocabulary";

}  // namespace

// The user's tokens, and the model's ids for them: `read` holds ids_ as its kept tokens and a node
// for every id of every pending piece.
class TranslatedModel::TranslatedSequence final : public Sequence {
 public:
  explicit TranslatedSequence(std::unique_ptr<Sequence> read) : read_(std::move(read)) {}

  int n_kept() const override { return static_cast<int>(tokens_.size()); }
  int n_pending() const override { return static_cast<int>(n_pending_); }
  void keep(std::span<const int> path) override {
    std::vector<int> nodes;
    for (std::size_t i = 0; i < path.size();) {
      const Piece& piece = piece_of(path[i]);
      if (path.size() - i < piece.tokens.size()) {  // only a part of a piece is kept
        is_whole_ = false;
        for (; i < path.size(); ++i) tokens_.push_back(piece.tokens[i]);
        break;
      }
      for (std::size_t j = 0; j < piece.ids.size(); ++j) {
        nodes.push_back(piece.first_node + static_cast<int>(j));
      }
      tokens_.insert(tokens_.end(), piece.tokens.begin(), piece.tokens.end());
      ids_.insert(ids_.end(), piece.ids.begin(), piece.ids.end());
      if (piece.is_text) is_whole_ = true;
      i += piece.tokens.size();
    }
    read_->keep(nodes);
    pending_.clear();
    n_pending_ = 0;
    if (!is_whole_) text_.truncate(tokens_.size());
  }
  int rewind(int n_tokens) override {
    if (n_tokens < 0 || n_tokens > n_kept()) {
      throw Error("rewind", "sequence", fmt::format("0 to {} tokens", n_kept()),
                  fmt::format("{}", n_tokens));
    }
    pending_.clear();
    n_pending_ = 0;
    read_->keep({});
    const bool is_shorter = static_cast<std::size_t>(n_tokens) < tokens_.size();
    tokens_.resize(static_cast<std::size_t>(n_tokens));
    text_.truncate(tokens_.size());  // it may be longer
    // The next reading decides which ids these tokens have.
    if (is_shorter) is_whole_ = false;
    return n_tokens;
  }
  std::unique_ptr<Sequence> fork() const override {
    auto copy = std::make_unique<TranslatedSequence>(read_->fork());
    copy->tokens_ = tokens_;
    copy->ids_ = ids_;
    copy->text_ = text_;
    copy->text_.truncate(tokens_.size());
    copy->is_whole_ = is_whole_;
    return copy;
  }

  Sequence& read() const { return *read_; }
  // Whether every kept token has been read.
  bool is_whole() const { return is_whole_; }
  // The node of read() that ends the pending token; for -1, the last kept one, -1.
  int last_node(int token) const {
    if (token < 0) return -1;
    const Piece& piece = piece_of(token);
    return piece.first_node + static_cast<int>(piece.ids.size()) - 1;
  }
  int n_nodes() const {
    return pending_.empty()
               ? 0
               : pending_.back().first_node + static_cast<int>(pending_.back().ids.size());
  }

  // Translates the kept tokens and `more` in one piece, and returns its ids that the model has not
  // read; they become pending. Ids that differ from what the model had read are dropped.
  std::vector<TokenId> reread(const VocabularyTranslation& translation,
                              std::span<const TokenId> more) {
    std::vector<TokenId> all = tokens_;
    all.insert(all.end(), more.begin(), more.end());
    const std::vector<TokenId>& ids = text_.update(translation, all);
    const auto [end, differs] = std::mismatch(ids_.begin(), ids_.end(), ids.begin(), ids.end());
    // At least one id is run, since its logits may be needed. Ids that the model cannot rewind past
    // are run again.
    const auto n_same = static_cast<std::size_t>(read_->rewind(
        static_cast<int>(std::min(static_cast<std::size_t>(end - ids_.begin()), ids.size() - 1))));
    ids_.resize(n_same);
    is_whole_ = false;  // until the piece is kept
    std::vector<TokenId> rest(ids.begin() + static_cast<std::ptrdiff_t>(n_same), ids.end());
    add_piece(more, rest, true);
    return rest;
  }
  void add_piece(std::span<const TokenId> tokens, const std::vector<TokenId>& ids, bool is_text) {
    pending_.push_back({.tokens = {tokens.begin(), tokens.end()},
                        .ids = ids,
                        .first_token = static_cast<int>(n_pending_),
                        .first_node = n_nodes(),
                        .is_text = is_text});
    n_pending_ += tokens.size();
  }
  // Call it without kept tokens: nothing was read then.
  void forget() {
    read_->rewind(0);
    ids_.clear();
    is_whole_ = true;
  }
  // Keeps a reread() of just the kept tokens.
  void keep_read() {
    std::vector<int> nodes(pending_.back().ids.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    ids_.insert(ids_.end(), pending_.back().ids.begin(), pending_.back().ids.end());
    read_->keep(nodes);
    pending_.clear();
    is_whole_ = true;
  }
  int max_tokens(const VocabularyTranslation& translation, std::span<const TokenId> more) const {
    std::vector<TokenId> all = tokens_;
    all.insert(all.end(), more.begin(), more.end());
    return std::max(text_.max_tokens(translation, all),
                    static_cast<int>(ids_.size()) + translation.max_read(more, tokens_.empty()));
  }
  std::size_t n_pieces() const { return pending_.size(); }
  void drop_pieces(std::size_t n_left) {
    pending_.resize(n_left);
    text_.truncate(tokens_.size());
    n_pending_ = n_left == 0 ? 0
                             : static_cast<std::size_t>(pending_.back().first_token) +
                                   pending_.back().tokens.size();
  }

 private:
  // Pending tokens that were translated together, and their ids.
  struct Piece {
    std::vector<TokenId> tokens;
    std::vector<TokenId> ids;
    int first_token = 0;
    int first_node = 0;
    bool is_text = false;  // once it is kept, all kept tokens are read
  };
  const Piece& piece_of(int token) const {
    const auto after =
        std::upper_bound(pending_.begin(), pending_.end(), token,
                         [](int at, const Piece& piece) { return at < piece.first_token; });
    return *std::prev(after);
  }

  std::unique_ptr<Sequence> read_;
  std::vector<TokenId> tokens_;  // the user's kept tokens
  std::vector<TokenId> ids_;     // the ids that read_ keeps
  TranslatedText text_;
  bool is_whole_ = true;
  std::vector<Piece> pending_;
  std::size_t n_pending_ = 0;  // tokens
};

TranslatedModel::TranslatedModel(std::unique_ptr<LanguageModel> model,
                                 VocabularyTranslation translation)
    : model_(std::move(model)), translation_(std::move(translation)), config_(model_->config()) {
  const int n_rows = config_.vocabulary_size;
  config_.vocabulary_size = static_cast<int>(translation_.spelled.size());
  const auto fits = [](TokenId token, int n) { return token >= 0 && token < n; };
  bool sound = static_cast<int>(translation_.shared.size()) <= n_rows;
  for (const std::vector<TokenId>& tokens : translation_.spelled) {
    sound = sound && !tokens.empty() &&
            std::all_of(tokens.begin(), tokens.end(), [&](TokenId t) { return fits(t, n_rows); });
  }
  for (const TokenId token : translation_.shared) {
    sound = sound && (token == kNoToken || fits(token, config_.vocabulary_size));
  }
  if (!sound) throw Error(kOperation, "translation", "tokens that both models have", "others");
  if (std::all_of(translation_.shared.begin(), translation_.shared.end(),
                  [](TokenId token) { return token == kNoToken; })) {
    throw Error(kOperation, "drafter",
                "tokens in common with the target (vocabulary=text needs none)", "none");
  }
  config_.end_tokens.clear();
  for (const TokenId end : model_->config().end_tokens) {
    const TokenId shared = static_cast<std::size_t>(end) < translation_.shared.size()
                               ? translation_.shared[static_cast<std::size_t>(end)]
                               : kNoToken;
    if (shared != kNoToken) config_.end_tokens.push_back(shared);
  }
  config_.bos_token = kNoToken;
}

std::unique_ptr<Sequence> TranslatedModel::open(const Prompt& prompt) {
  return std::make_unique<TranslatedSequence>(model_->open(prompt));
}

void TranslatedModel::require_known(std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < config_.vocabulary_size) continue;
    throw Error(kOperation, "token", fmt::format("0 to {}", config_.vocabulary_size - 1),
                fmt::format("{}", token));
  }
}

int TranslatedModel::context_of(const Sequence& sequence) const {
  return model_->context_of(static_cast<const TranslatedSequence&>(sequence).read());
}

int TranslatedModel::remaining_context(const Sequence& sequence,
                                       std::span<const TokenId> next) const {
  require_known(next);
  return context_of(sequence) -
         static_cast<const TranslatedSequence&>(sequence).max_tokens(translation_, next);
}

// Reads a sequence's kept tokens that its model has not read.
void TranslatedModel::catch_up(TranslatedSequence& sequence) {
  if (sequence.is_whole()) return;
  if (sequence.n_kept() == 0) return sequence.forget();
  const std::vector<TokenId> ids = sequence.reread(translation_, {});
  const TokenBlock block{.sequence = &sequence.read(), .tokens = ids, .parents = {}};
  model_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::none, .rows = {}}}, output_);
  sequence.keep_read();
}

void TranslatedModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                              ForwardOutput& output) {
  if (!request.feature_layers.empty() || !request.skip_layers.empty()) {
    throw Error(kOperation, "request", "logits alone", "hidden states or layers to skip");
  }
  const RowSet::Kind kind = request.logits.kind;
  const bool asks_within = kind == RowSet::Kind::all || kind == RowSet::Kind::listed;
  for (const TokenBlock& block : blocks) require_known(block.tokens);
  std::vector<std::vector<TokenId>> ids(blocks.size());
  std::vector<std::vector<int>> parents(blocks.size());
  std::vector<TokenBlock> read_blocks;
  std::vector<std::size_t> n_pieces;  // for each block: its sequence's pieces before
  std::vector<int> last_rows;         // for each row of the user's pass: the row that ends it
  std::vector<int> asked;
  int n_read_rows = 0;
  try {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const TokenBlock& block = blocks[b];
      auto& sequence = static_cast<TranslatedSequence&>(*block.sequence);
      const bool is_chain = block.parents.empty();
      n_pieces.push_back(sequence.n_pieces());
      if (is_chain && sequence.n_pending() == 0 && !asks_within) {
        ids[b] = sequence.reread(translation_, block.tokens);
        last_rows.resize(last_rows.size() + block.tokens.size(),
                         n_read_rows + static_cast<int>(ids[b].size()) - 1);
      } else {
        if (sequence.n_pending() == 0) catch_up(sequence);
        for (std::size_t i = 0; i < block.tokens.size(); ++i) {
          const std::vector<TokenId> spelled = translation_.spell(block.tokens.subspan(i, 1));
          if (!is_chain) {
            const int first = sequence.n_nodes();
            parents[b].push_back(sequence.last_node(block.parents[i]));
            for (std::size_t j = 1; j < spelled.size(); ++j) {
              parents[b].push_back(first + static_cast<int>(j) - 1);
            }
          }
          sequence.add_piece(block.tokens.subspan(i, 1), spelled, false);
          ids[b].insert(ids[b].end(), spelled.begin(), spelled.end());
          last_rows.push_back(n_read_rows + static_cast<int>(ids[b].size()) - 1);
        }
      }
      n_read_rows += static_cast<int>(ids[b].size());
      if (kind == RowSet::Kind::last_of_each_block) asked.push_back(last_rows.back());
      read_blocks.push_back(
          {.sequence = &sequence.read(), .tokens = ids[b], .parents = parents[b], .features = {}});
    }
    if (kind == RowSet::Kind::all) asked = last_rows;
    if (kind == RowSet::Kind::listed) {
      for (const int row : request.logits.rows) {
        asked.push_back(last_rows[static_cast<std::size_t>(row)]);
      }
    }
    const RowSet rows{.kind = asked.empty() ? RowSet::Kind::none : RowSet::Kind::listed,
                      .rows = asked};
    model_->forward(read_blocks, {.logits = rows}, output_);
  } catch (...) {
    output.clear();
    for (std::size_t b = n_pieces.size(); b-- > 0;) {
      static_cast<TranslatedSequence*>(blocks[b].sequence)->drop_pieces(n_pieces[b]);
    }
    throw;
  }
  try {
    give(kind == RowSet::Kind::none ? 0 : output_.logits.n_rows(), output);
  } catch (...) {  // a device's rows are fetched there
    output.clear();
    throw;
  }
}

// Converts the model's rows to the user's vocabulary.
void TranslatedModel::give(int n_rows, ForwardOutput& output) const {
  const auto width = static_cast<std::size_t>(config_.vocabulary_size);
  output.feature_width = 0;
  float* given = output.logits.start_pass(n_rows, config_.vocabulary_size);
  std::fill_n(given, static_cast<std::size_t>(n_rows) * width,
              -std::numeric_limits<float>::infinity());
  for (int row = 0; row < n_rows; ++row, given += width) {
    const std::span<const float> said = output_.logits.row(row).values();
    for (std::size_t token = 0; token < translation_.shared.size(); ++token) {
      const TokenId shared = translation_.shared[token];
      if (shared != kNoToken) given[shared] = said[token];
    }
  }
}

}  // namespace outrider
