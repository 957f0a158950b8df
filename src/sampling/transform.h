// From logits to the distribution a token is drawn from: bias, penalties, temperature, truncation.
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

// What penalties look at: the tokens seen so far, as counts; where a request has a grammar, the
// state that these tokens have led to; where it has a mask of the program's, the generated tokens.
// Grows as tokens are committed.
//
// A copy goes on by itself. All that have a matcher, or masks, share what it remembers: one of them
// at a time may be asked.
class TokenHistory {
 public:
  // Room for n_tokens different tokens: until there are more, adding one allocates nothing.
  void reserve(std::size_t n_tokens);
  void add_prompt(std::span<const TokenId> tokens);
  void add_generated(TokenId token);
  // Different tokens that there is room for.
  std::size_t capacity() const { return counts_.capacity(); }

  struct Count {
    TokenId token = kNoToken;
    bool in_prompt = false;
    int generated = 0;
  };
  std::span<const Count> counts() const { return counts_; }  // a token each, as they came
  bool contains(TokenId token) const { return !places_.empty() && places_[place_of(token)] >= 0; }

  // From here on, generated tokens are read by the matcher from its start.
  void constrain(std::shared_ptr<GrammarMatcher> matcher);
  // Until anything may follow what was generated, if that ever comes.
  bool is_constrained() const { return matcher_ != nullptr && !matcher_->is_free(state_); }
  // Of a constrained text.
  GrammarMatcher& matcher() const { return *matcher_; }
  // The matcher's state behind the generated tokens and those of a path.
  int state_behind(std::span<const TokenId> path) const;

  // Before any token is generated: from here on they are kept for these masks.
  void mask_by(std::shared_ptr<TextMasks> masks) { masks_ = std::move(masks); }
  bool is_masked() const { return masks_ != nullptr; }
  // Of a masked text.
  TextMasks& masks() const { return *masks_; }
  std::span<const TokenId> generated() const { return generated_; }

 private:
  Count& count_of(TokenId token);
  std::size_t place_of(TokenId token) const;  // the token's own, or the free one it would get

  std::vector<Count> counts_;
  // Open addressing, a power of two of places, half of them free at least: where in counts_ a
  // token's count is, -1 in free places.
  std::vector<std::int32_t> places_;
  std::shared_ptr<GrammarMatcher> matcher_;
  int state_ = GrammarMatcher::kNotAllowed;
  std::shared_ptr<TextMasks> masks_;
  std::vector<TokenId> generated_;  // of a masked text, in their order
};

// What a token's logit was, or is.
struct TokenLogit {
  TokenId token = kNoToken;
  float logit = 0;
};

// The transform of one request. Target and drafter go through the same one. Immutable; thread-safe.
class Transform {
 public:
  // Throws UsageError if a parameter is out of its range or a biased id outside the vocabulary.
  Transform(SamplingParams params, int vocabulary_size);

  const SamplingParams& params() const { return params_; }
  // Every distribution is a point mass, for any logits.
  bool greedy() const { return params_.temperature == 0 || params_.top_k == 1; }

  // Bias, penalties and the masks of grammar and program, in place, on logits (vocabulary): what
  // one of them does not let follow gets -infinity. `path` are the tokens of the node's own path
  // below the committed ones, root excluded (they count as generated: a token twice on the path
  // counts twice). Bias, history and path may hold ids that the logits (of a drafter with a smaller
  // vocabulary) do not have: those are passed over. replaced, unless null, gets at its end each
  // logit that is written, as it was before, in the order of writing.
  void penalise(std::span<float> logits, const TokenHistory& history, std::span<const TokenId> path,
                std::vector<TokenLogit>* replaced = nullptr) const;

  // distribution() is raw_distribution(), to the bit.
  bool keeps_raw() const;

  // The softmax of penalised logits, nothing else: the "raw" distribution of deferral decisions.
  // Strange logits as in distribution().
  void raw_distribution(std::span<const float> penalised, Distribution& out) const;

  // Temperature and truncation on penalised logits, in double. Temperature 0 gives the point mass
  // at the largest logit, the lowest id among equals. A NaN logit counts as the smallest, below
  // -infinity. Tokens of probability 0 (-infinity, NaN, underflow) are not in the support; if that
  // would leave none, the result is that of temperature 0. Logits of +infinity share everything.
  void distribution(std::span<const float> penalised, Distribution& out) const;
  // The same of a row; where the transform is greedy, its likeliest token is all that is asked for.
  void distribution(LogitRow penalised, Distribution& out) const;

  // The most tokens that distribution() leaves of n_logits.
  std::size_t most_tokens(std::size_t n_logits) const;

  // Whether penalise may change something, so that callers have to know a node's path.
  bool changes_logits(const TokenHistory& history) const {
    return has_penalties() || history.is_constrained() || history.is_masked();
  }
  // The same, where there is no mask.
  bool has_penalties() const;

 private:
  SamplingParams params_;
};

// The ids of the `count` largest logits, the largest first, the lowest id first among equals;
// `ids` is overwritten. Tokens that cannot be (-infinity, NaN) are left out, but the first is
// always the one that temperature 0 takes. count >= 1.
void likeliest_tokens(std::span<const float> logits, int count, std::vector<TokenId>& ids);
void likeliest_tokens(LogitRow logits, int count, std::vector<TokenId>& ids);
// The one that temperature 0 takes.
TokenId likeliest_token(LogitRow logits);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_TRANSFORM_H_
