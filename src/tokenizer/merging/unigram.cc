// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/merging/bpe.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {

namespace {

// At this sum, sums in single precision are restarted.
constexpr double kLowestSum = -100000;

// After this many places the search looks for what all paths share. The arrays for them stay in L1
// and L2.
constexpr std::size_t kManyPlaces = 2048;

}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, std::span<const ScoredPiece> pieces,
                 UnigramOptions options)
    : options_(options),
      scores_(static_cast<std::size_t>(vocabulary.size())),
      n_bytes_(scores_.size()) {
  std::vector<PieceTrie::Piece> texts;
  texts.reserve(pieces.size());
  for (const ScoredPiece& piece : pieces) {
    const std::string_view text = vocabulary[piece.id].piece;
    texts.push_back({text, piece.id});
    scores_[static_cast<std::size_t>(piece.id)] = piece.score;
    n_bytes_[static_cast<std::size_t>(piece.id)] = static_cast<std::uint16_t>(text.size());
    longest_ = std::max(longest_, text.size());
  }
  trie_ = PieceTrie(std::move(texts));
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[static_cast<std::size_t>(byte)] = vocabulary.find_in_model(byte_token_piece(byte));
  }
}

// Takes the pieces of a word in order, part by part, and joins unknown characters.
class Unigram::Output {
 public:
  Output(const Unigram& model, std::string_view word, const Vocabulary& vocabulary,
         bool without_added, std::vector<TokenId>& out)
      : model_(model),
        word_(word),
        vocabulary_(vocabulary),
        without_added_(without_added),
        out_(out) {}
  void add(std::size_t begin, TokenId id) {
    if (id != model_.options_.unknown) {
      end_run(begin);
      out_.push_back(id);
    } else if (run_begin_ == kNoRun) {
      run_begin_ = begin;
    }
  }
  // Emits the unknown characters up to `end`, if there are any.
  void end_run(std::size_t end) {
    if (run_begin_ == kNoRun) return;
    const std::string_view run = word_.substr(run_begin_, end - run_begin_);
    run_begin_ = kNoRun;
    const TokenId whole = vocabulary_.find_in_model(run);
    if (whole != kNoToken && !(without_added_ && vocabulary_[whole].added)) {
      out_.push_back(whole);
      return;
    }
    const auto token_of = [this](char byte) {
      return model_.byte_tokens_[static_cast<unsigned char>(byte)];
    };
    if (model_.options_.byte_fallback && std::all_of(run.begin(), run.end(), [&](char byte) {
          return token_of(byte) != kNoToken;
        })) {
      for (const char byte : run) out_.push_back(token_of(byte));
    } else {
      out_.push_back(model_.options_.unknown);
    }
  }

 private:
  static constexpr std::size_t kNoRun = ~std::size_t{0};
  const Unigram& model_;
  std::string_view word_;
  const Vocabulary& vocabulary_;
  bool without_added_;
  std::vector<TokenId>& out_;
  std::size_t run_begin_ = kNoRun;
};

// The places of a word: bytes where a piece may end, from the last settled one on.
class Unigram::Search {
 public:
  Search(const Unigram& model, std::string_view word, Scratch& scratch, Output& output)
      : model_(model),
        word_(word),
        scratch_(scratch),
        output_(output),
        pieces_(scratch.last_pieces),
        mask_(std::bit_ceil(model.longest_ + 1) - 1) {
    pieces_.assign(1, kUnreached);
    scratch.sums.resize(mask_ + 1);
    sum(0) = 0;
  }
  double& sum(std::size_t place) { return scratch_.sums[place & mask_]; }
  // Whether the place accepts the piece, which ends there.
  bool offer(std::size_t place, double exact_sum, std::int32_t piece) {
    const double offered = model_.rounded(exact_sum);
    if (pieces_.size() <= place - begin_) pieces_.resize(place - begin_ + 1, kUnreached);
    std::int32_t& last = pieces_[place - begin_];
    if (last != kUnreached && offered <= sum(place)) return false;
    last = piece;
    sum(place) = offered;
    return true;
  }
  // Every piece that begins before `at`, a place, has been offered.
  void settle_before(std::size_t at) {
    if (pieces_.size() == at - begin_ + 1) {  // no piece crosses it: all paths pass here
      settle(at);
    } else if (pieces_.size() > next_look_) {
      settle(shared_place(at));
      next_look_ = std::max(kManyPlaces, 2 * pieces_.size());
    }
  }
  void settle(std::size_t end) {
    scratch_.n_places = std::max(scratch_.n_places, pieces_.size());
    scratch_.path.clear();
    for (std::size_t at = end; at > begin_; at -= n_bytes_before(at)) {
      scratch_.path.push_back(pieces_[at - begin_]);
    }
    std::size_t at = begin_;
    for (auto piece = scratch_.path.rbegin(); piece != scratch_.path.rend(); ++piece) {
      const bool unknown = *piece == kUnknownCharacter;
      output_.add(at, unknown ? model_.options_.unknown : *piece);
      at += unknown ? static_cast<std::size_t>(code_point_at(word_, at).n_bytes)
                    : model_.n_bytes_[static_cast<std::size_t>(*piece)];
    }
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(end - begin_));
    begin_ = end;
  }
  // Subtracts the settled sum from all open ones. (Their size affects how later ones round.)
  void begin_anew(std::size_t at) {
    const double passed = sum(at);
    for (std::size_t place = at; place < begin_ + pieces_.size(); ++place) {
      sum(place) = model_.rounded(sum(place) - passed);
    }
  }

 private:
  // The length of the last piece on the best path to a place.
  std::size_t n_bytes_before(std::size_t place) const {
    const std::int32_t piece = pieces_[place - begin_];
    if (piece != kUnknownCharacter) return model_.n_bytes_[static_cast<std::size_t>(piece)];
    return place - last_character(word_.substr(begin_, place - begin_)) - begin_;
  }
  // The last place shared by the best paths to `at` and to every later place. Later paths begin
  // with one of these.
  std::size_t shared_place(std::size_t at) const {
    std::vector<char>& on_path = scratch_.on_path;
    on_path.assign(pieces_.size(), 0);
    std::size_t n_open = 0;
    for (std::size_t place = at; place < begin_ + pieces_.size(); ++place) {
      if (pieces_[place - begin_] == kUnreached) continue;
      on_path[place - begin_] = 1;
      ++n_open;
    }
    std::size_t place = begin_ + pieces_.size() - 1;
    for (;; --place) {
      if (on_path[place - begin_] == 0) continue;
      if (n_open == 1) return place;
      char& before = on_path[place - begin_ - n_bytes_before(place)];
      if (before == 1) --n_open;
      before = 1;
    }
  }

  const Unigram& model_;
  std::string_view word_;
  Scratch& scratch_;
  Output& output_;
  std::vector<std::int32_t>& pieces_;  // from begin_ on
  std::size_t mask_;
  std::size_t begin_ = 0;
  std::size_t next_look_ = kManyPlaces;  // when there are as many places
};

void Unigram::encode(std::string_view word, const Vocabulary& vocabulary, bool without_added,
                     Scratch& scratch, std::vector<TokenId>& out) const {
  Output output(*this, word, vocabulary, without_added, out);
  Search search(*this, word, scratch, output);
  for (std::size_t at = 0; at < word.size();) {
    search.settle_before(at);
    const CodePoint character = code_point_at(word, at);
    const std::size_t behind = at + static_cast<std::size_t>(character.n_bytes);
    if (options_.single_precision && search.sum(at) < kLowestSum) search.begin_anew(at);
    const double sum = search.sum(at);
    bool is_piece = false;
    PieceTrie::Node node = PieceTrie::kRoot;
    for (std::size_t end = at; end < word.size();) {
      node = trie_.child(node, word[end]);
      ++scratch.n_steps;
      if (node == PieceTrie::kNone) break;
      ++end;
      const TokenId id = trie_.piece(node);
      if (id == kNoToken || (without_added && vocabulary[id].added)) continue;
      search.offer(end, sum + scores_[static_cast<std::size_t>(id)], id);
      is_piece = is_piece || end == behind;
    }
    if (!is_piece && search.offer(behind, sum + options_.unknown_score, kUnknownCharacter) &&
        options_.unknown == kNoToken) {
      throw Error("tokenize", "text", "characters of a vocabulary that has no unknown token",
                  fmt::format("U+{:04X}", static_cast<std::uint32_t>(character.value)));
    }
    at = behind;
  }
  search.settle(word.size());
  output.end_run(word.size());
}

}  // namespace outrider
