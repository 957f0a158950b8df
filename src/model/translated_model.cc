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

class TranslatedModel::TranslatedSequence final : public Sequence {
 public:
  explicit TranslatedSequence(std::unique_ptr<Sequence> read) : read_(std::move(read)) {}

  int n_kept() const override { return kept_.empty() ? 0 : kept_.back().n_tokens; }
  int n_pending() const override {
    return pending_.empty() ? 0 : pending_.back().first_token + pending_.back().n_tokens;
  }
  // Pieces that were read together are kept together: of one that the path leaves before its last
  // token nothing stays.
  void keep(std::span<const int> path) override {
    std::vector<int> read;
    Mark mark = kept_.empty() ? Mark{} : kept_.back();
    for (std::size_t i = 0; i < path.size();) {
      const Piece& piece = pieces_at(path[i]);
      if (path.size() - i < static_cast<std::size_t>(piece.n_tokens)) break;
      for (int j = 0; j < piece.n_read; ++j) read.push_back(piece.first_read + j);
      mark.n_tokens += piece.n_tokens;
      mark.n_read += piece.n_read;
      kept_.push_back(mark);
      i += static_cast<std::size_t>(piece.n_tokens);
    }
    read_->keep(read);
    pending_.clear();
  }
  // Down to the last piece that ends there or before.
  void truncate(int n_tokens) override {
    pending_.clear();
    while (!kept_.empty() && kept_.back().n_tokens > n_tokens) kept_.pop_back();
    read_->truncate(kept_.empty() ? 0 : kept_.back().n_read);
  }
  std::unique_ptr<Sequence> fork() const override {
    auto copy = std::make_unique<TranslatedSequence>(read_->fork());
    copy->kept_ = kept_;
    return copy;
  }

  Sequence& read() const { return *read_; }
  // The node of read() that ends the pending token; -1 for -1, the last kept one.
  int last_read(int token) const {
    if (token < 0) return -1;
    const Piece& piece = pieces_at(token);
    return piece.first_read + piece.n_read - 1;
  }
  void add_piece(int n_tokens, int n_read) {
    const int first_token = n_pending();
    const int first_read =
        pending_.empty() ? 0 : pending_.back().first_read + pending_.back().n_read;
    pending_.push_back({first_token, n_tokens, first_read, n_read});
  }
  std::size_t n_pieces() const { return pending_.size(); }
  void drop_pieces(std::size_t n_left) { pending_.resize(n_left); }

 private:
  // Pending tokens that were read together, and the nodes of read() that they became.
  struct Piece {
    int first_token = 0;
    int n_tokens = 0;
    int first_read = 0;
    int n_read = 0;
  };
  // Where a piece of the kept tokens ends.
  struct Mark {
    int n_tokens = 0;
    int n_read = 0;
  };
  const Piece& pieces_at(int token) const {
    const auto after =
        std::upper_bound(pending_.begin(), pending_.end(), token,
                         [](int at, const Piece& piece) { return at < piece.first_token; });
    return *std::prev(after);
  }

  std::unique_ptr<Sequence> read_;
  std::vector<Mark> kept_;
  std::vector<Piece> pending_;
};

// A pass on its way to the model.
struct TranslatedModel::Reading {
  std::vector<std::vector<TokenId>> tokens;  // by block
  std::vector<std::vector<int>> parents;     // by block; empty for a chain
  std::vector<int> last_rows;                // by row of the user's pass: the row that ends it
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

int TranslatedModel::room(const Sequence& sequence, std::span<const TokenId> next) const {
  require_known(next);
  const auto& translated = static_cast<const TranslatedSequence&>(sequence);
  return model_->room(translated.read(), {}) -
         translation_.most_read(next, translated.n_kept() == 0);
}

void TranslatedModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                              ForwardOutput& output) {
  if (!request.feature_layers.empty() || !request.skip_layers.empty()) {
    throw Error(kOperation, "request", "logits alone", "hidden states or layers to skip");
  }
  const RowSet::Kind kind = request.logits.kind;
  Reading reading;
  std::vector<TokenBlock> read_blocks;
  std::vector<std::size_t> n_pieces;  // that each block's sequence had before
  std::vector<int> last_of_blocks;    // rows of the user's pass
  const auto undo = [&] {
    for (std::size_t i = n_pieces.size(); i-- > 0;) {
      static_cast<TranslatedSequence*>(blocks[i].sequence)->drop_pieces(n_pieces[i]);
    }
  };
  reading.tokens.reserve(blocks.size());
  reading.parents.reserve(blocks.size());
  int n_rows = 0;
  int n_read_rows = 0;
  try {
    for (const TokenBlock& block : blocks) {
      auto& sequence = static_cast<TranslatedSequence&>(*block.sequence);
      n_pieces.push_back(sequence.n_pieces());
      std::vector<TokenId>& tokens = reading.tokens.emplace_back();
      std::vector<int>& parents = reading.parents.emplace_back();
      require_known(block.tokens);
      if (kind == RowSet::Kind::none && block.parents.empty() && sequence.n_pending() == 0) {
        tokens = translation_.read_text(block.tokens, sequence.n_kept() == 0);
        sequence.add_piece(static_cast<int>(block.tokens.size()), static_cast<int>(tokens.size()));
      } else {
        for (std::size_t i = 0; i < block.tokens.size(); ++i) {
          const std::vector<TokenId> spelled = translation_.spell(block.tokens.subspan(i, 1));
          if (!block.parents.empty()) {
            int parent = sequence.last_read(block.parents[i]);
            for (std::size_t j = 0; j < spelled.size(); ++j) {
              parents.push_back(parent);
              parent = sequence.last_read(sequence.n_pending() - 1) + 1 + static_cast<int>(j);
            }
          }
          sequence.add_piece(1, static_cast<int>(spelled.size()));
          tokens.insert(tokens.end(), spelled.begin(), spelled.end());
          reading.last_rows.push_back(n_read_rows + static_cast<int>(tokens.size()) - 1);
        }
      }
      n_rows += static_cast<int>(block.tokens.size());
      n_read_rows += static_cast<int>(tokens.size());
      last_of_blocks.push_back(n_rows - 1);
      read_blocks.push_back(
          {.sequence = &sequence.read(), .tokens = tokens, .parents = parents, .features = {}});
    }
    std::vector<int> rows;
    const auto ask = [&](int row) {
      rows.push_back(reading.last_rows[static_cast<std::size_t>(row)]);
    };
    if (kind == RowSet::Kind::last_of_each_block) {
      std::for_each(last_of_blocks.begin(), last_of_blocks.end(), ask);
    } else if (kind == RowSet::Kind::all) {
      rows = reading.last_rows;
    } else if (kind == RowSet::Kind::listed) {
      std::for_each(request.logits.rows.begin(), request.logits.rows.end(), ask);
    }
    const RowSet read_rows{.kind = rows.empty() ? RowSet::Kind::none : RowSet::Kind::listed,
                           .rows = rows};
    model_->forward(read_blocks, {.logits = read_rows}, output_);
  } catch (...) {
    undo();
    throw;
  }
  const auto width = static_cast<std::size_t>(config_.vocabulary_size);
  output.n_rows = kind == RowSet::Kind::none ? 0 : output_.n_rows;
  output.vocabulary_size = config_.vocabulary_size;
  output.feature_width = 0;
  output.logits.assign(static_cast<std::size_t>(output.n_rows) * width,
                       -std::numeric_limits<float>::infinity());
  for (int row = 0; row < output.n_rows; ++row) {
    const std::span<const float> said = output_.logits_row(row);
    float* const given = output.logits.data() + static_cast<std::size_t>(row) * width;
    for (std::size_t token = 0; token < translation_.shared.size(); ++token) {
      const TokenId shared = translation_.shared[token];
      if (shared != kNoToken) given[shared] = said[token];
    }
  }
}

}  // namespace outrider
