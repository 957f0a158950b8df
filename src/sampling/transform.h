// SPDX-License-Identifier: Apache-2.0
// Turns logits into the distribution a token is drawn from: bias, penalties, temperature,
// truncation.
#ifndef OUTRIDER_SAMPLING_TRANSFORM_H_
#define OUTRIDER_SAMPLING_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/logit_row.h"
#include "grammar/matcher.h"
#include "outrider/sampling.h"
#include "sampling/distribution.h"
#include "sampling/text_masks.h"

namespace outrider {

// The history that a transform depends on: counts of the tokens seen so far; with a grammar, the
// state reached by these tokens; with a program's mask, the generated tokens. Grows as tokens are
// committed.
//
// A copy continues independently. All copies share the matcher's or the masks' caches, so only one
// of them at a time may be used.
class TokenHistory {
 public:
  // Reserves memory for n_tokens different tokens: up to that number, adding a token allocates
  // nothing.
  void reserve(std::size_t n_tokens);
  void add_prompt(std::span<const TokenId> tokens);
  void add_generated(TokenId token);
  // Different tokens for which memory is reserved.
  std::size_t capacity() const { return counts_.capacity(); }

  struct Count {
    TokenId token = kNoToken;
    bool in_prompt = false;
    int generated = 0;
  };
  std::span<const Count> counts() const { return counts_; }  // by first appearance
  bool contains(TokenId token) const { return !places_.empty() && places_[place_of(token)] >= 0; }

  // From here on, the matcher reads generated tokens from its start.
  void constrain(std::shared_ptr<GrammarMatcher> matcher);
  // True until anything may follow the generated tokens, if that happens.
  bool is_constrained() const { return matcher_ != nullptr && !matcher_->is_free(state_); }
  // Requires a constrained text.
  GrammarMatcher& matcher() const { return *matcher_; }
  // The matcher's state after the generated tokens and those of a path.
  int state_behind(std::span<const TokenId> path) const;

  // Called before any token is generated: from here on they are kept for these masks.
  void mask_by(std::shared_ptr<TextMasks> masks) { masks_ = std::move(masks); }
  bool is_masked() const { return masks_ != nullptr; }
  // Requires a masked text.
  TextMasks& masks() const { return *masks_; }
  std::span<const TokenId> generated() const { return generated_; }

 private:
  Count& count_of(TokenId token);
  std::size_t place_of(TokenId token) const;  // its own, or the free one that it would get

  std::vector<Count> counts_;
  // Open addressing with a power of two of places, at least half of them free: the index in counts_
  // of a token's count, -1 in free places.
  std::vector<std::int32_t> places_;
  std::shared_ptr<GrammarMatcher> matcher_;
  int state_ = GrammarMatcher::kNotAllowed;
  std::shared_ptr<TextMasks> masks_;
  std::vector<TokenId> generated_;  // of a masked text, in order
};

// A token and its logit.
struct TokenLogit {
  TokenId token = kNoToken;
  float logit = 0;
};

// The transform of one request, for target and drafter alike. Immutable; thread-safe.
class Transform {
 public:
  // Throws UsageError if a parameter is out of its range or a biased id outside the vocabulary.
  Transform(SamplingParams params, int vocabulary_size);

  const SamplingParams& params() const { return params_; }
  // Every distribution is a point mass, for any logits.
  bool greedy() const { return params_.temperature == 0 || params_.top_k == 1; }

  // Applies bias, penalties and the masks of grammar and program in place to logits (vocabulary);
  // forbidden tokens get -infinity. `path` holds the tokens of the node's path after the committed
  // ones, root excluded (they count as generated: a token twice on the path counts twice). Ids in
  // bias, history and path beyond the logits (of a drafter with a smaller vocabulary) are ignored.
  // replaced, unless null: each logit that is written is appended with its previous value, in the
  // order of writing.
  void penalise(std::span<float> logits, const TokenHistory& history, std::span<const TokenId> path,
                std::vector<TokenLogit>* replaced = nullptr) const;

  // Whether distribution() equals raw_distribution(), to the bit.
  bool keeps_raw() const;

  // The softmax of penalised logits, nothing else: what cascade rules compare.
  // Invalid logits as in distribution().
  void raw_distribution(std::span<const float> penalised, Distribution& out) const;

  // Applies temperature and truncation to penalised logits, in double. Temperature 0 gives the
  // point mass at the largest logit, the lowest id among equals. A NaN logit counts as the
  // smallest, below -infinity. Tokens of probability 0 (-infinity, NaN, underflow) are not in the
  // support; if none would be left, the result is that of temperature 0. Logits of +infinity share
  // all the mass.
  void distribution(std::span<const float> penalised, Distribution& out) const;
  // The same for a row; with a greedy transform only its likeliest token is requested.
  void distribution(LogitRow penalised, Distribution& out) const;

  // The largest support that distribution() can leave of n_logits.
  std::size_t max_support(std::size_t n_logits) const;

  // Whether penalise may change something, so that callers need a node's path.
  bool changes_logits(const TokenHistory& history) const {
    return has_penalties() || history.is_constrained() || history.is_masked();
  }
  // The same without grammar and mask.
  bool has_penalties() const;

 private:
  SamplingParams params_;
};

// The ids of the `count` largest logits, the largest first, the lowest id first among equals; `ids`
// is overwritten. Impossible tokens (-infinity, NaN) are left out, except that the first is always
// the token of temperature 0. count >= 1.
void likeliest_tokens(std::span<const float> logits, int count, std::vector<TokenId>& ids);
void likeliest_tokens(LogitRow logits, int count, std::vector<TokenId>& ids);
// The token of temperature 0.
TokenId likeliest_token(LogitRow logits);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_TRANSFORM_H_
