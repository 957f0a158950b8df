#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/utf8.h"

namespace outrider {

namespace {

// Where a sum in single precision begins anew.
constexpr double kLowestSum = -100000;

}  // namespace

Unigram::Unigram(const Vocabulary& vocabulary, std::span<const ScoredPiece> pieces,
                 UnigramOptions options)
    : options_(options), scores_(static_cast<std::size_t>(vocabulary.size())) {
  std::vector<PieceTrie::Piece> texts;
  texts.reserve(pieces.size());
  for (const ScoredPiece& piece : pieces) {
    texts.push_back({vocabulary[piece.id].piece, piece.id});
    scores_[static_cast<std::size_t>(piece.id)] = piece.score;
  }
  trie_ = PieceTrie(std::move(texts));
  for (int byte = 0; byte < 256; ++byte) {
    byte_tokens_[static_cast<std::size_t>(byte)] = vocabulary.find_in_model(byte_token_piece(byte));
  }
}

// Takes the pieces of a word in order, from stretch to stretch, and joins unknown characters.
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
  // The unknown characters up to `end`, if there are any.
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

void Unigram::encode(std::string_view word, const Vocabulary& vocabulary, bool without_added,
                     Scratch& scratch, std::vector<TokenId>& out) const {
  Output output(*this, word, vocabulary, without_added, out);
  auto& places = scratch.places;
  places.assign(1, {});
  std::size_t begin = 0;  // the byte that places[0] stands for
  const auto offer = [&](std::size_t from, std::size_t to, double exact_sum, TokenId id) {
    const double sum = rounded(exact_sum);
    if (places.size() <= to - begin) places.resize(to - begin + 1);
    Scratch::Place& place = places[to - begin];
    if (place.begin != Scratch::kUnreached && sum <= place.sum) return false;
    place = {sum, from, id};
    return true;
  };
  // Everything up to `end` is settled.
  const auto settle = [&](std::size_t end) {
    scratch.n_places = std::max(scratch.n_places, places.size());
    scratch.path.clear();
    for (std::size_t at = end; at > begin; at = places[at - begin].begin) {
      scratch.path.push_back(at);
    }
    std::size_t from = begin;
    for (auto to = scratch.path.rbegin(); to != scratch.path.rend(); ++to) {
      output.add(from, places[*to - begin].id);
      from = *to;
    }
    const double sum = places[end - begin].sum;  // kept, for its size decides how others round
    places.assign(1, {.sum = sum});
    begin = end;
  };
  for (std::size_t at = 0; at < word.size();) {
    // Where no piece reaches over this character, all ways pass between it and the one before.
    if (places.size() == at - begin + 1) settle(at);
    const CodePoint character = code_point_at(word, at);
    const std::size_t behind = at + static_cast<std::size_t>(character.n_bytes);
    if (options_.single_precision && places[at - begin].sum < kLowestSum) {
      const double passed = places[at - begin].sum;
      for (std::size_t ahead = at - begin; ahead < places.size(); ++ahead) {
        places[ahead].sum = rounded(places[ahead].sum - passed);
      }
    }
    const double sum = places[at - begin].sum;
    bool is_piece = false;
    PieceTrie::Node node = PieceTrie::kRoot;
    for (std::size_t end = at; end < word.size();) {
      node = trie_.child(node, word[end]);
      ++scratch.n_steps;
      if (node == PieceTrie::kNone) break;
      ++end;
      const TokenId id = trie_.piece(node);
      if (id == kNoToken || (without_added && vocabulary[id].added)) continue;
      offer(at, end, sum + scores_[static_cast<std::size_t>(id)], id);
      is_piece = is_piece || end == behind;
    }
    if (!is_piece && offer(at, behind, sum + options_.unknown_score, options_.unknown) &&
        options_.unknown == kNoToken) {
      throw Error("tokenize", "text", "characters of a vocabulary that has no unknown token",
                  fmt::format("U+{:04X}", static_cast<std::uint32_t>(character.value)));
    }
    at = behind;
  }
  settle(word.size());
  output.end_run(word.size());
}

}  // namespace outrider
