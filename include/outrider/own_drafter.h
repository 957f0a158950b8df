// SPDX-License-Identifier: Apache-2.0
// A drafter written by the program: it proposes tokens, and the engine verifies them.
//
//   class Echo : public outrider::OwnDrafter {
//     void propose(const outrider::OwnText& text, outrider::OwnDraft& draft) override {
//       draft.add(-1, text.tokens.back());  // the last token once more
//     }
//   };
//   outrider::Generator generator(model, {.drafter = "own", .own_drafter =
//   std::make_shared<Echo>()});
//
// For any proposals the texts are those of plain decoding: bit for bit at temperature 0 and with
// verify = "coupled", in distribution otherwise. The one condition concerns tokens drawn at random:
// see OwnDraft::add().
#ifndef OUTRIDER_OWN_DRAFTER_H_
#define OUTRIDER_OWN_DRAFTER_H_

#include <cstdint>
#include <span>

#include "outrider/types.h"

namespace outrider {

// One text, identified by `id` among all texts of the process. Valid for the call only.
struct OwnText {
  std::int64_t id = 0;
  std::span<const TokenId> tokens;  // (n >= 1): the prompt and all generated tokens
};

// The distribution a token was drawn from. Tokens that are not listed have probability 0.
struct TokenDistribution {
  std::span<const TokenId> ids;   // (n): each once, in any order
  std::span<const double> probs;  // (n): finite, >= 0; their sum is > 0 and <= 1, up to rounding
                                  // (0.004). They are divided by it.
};

// One round's draft of a text: a tree of tokens. Node i is the i-th token added, from 0; node -1 is
// the text's last token. Each function throws Error for invalid additions and leaves the draft
// unchanged.
class OwnDraft {
 public:
  virtual ~OwnDraft() = default;

  // Limits of a node's depth (a child of node -1 has depth 1) and of the number of nodes. At least
  // 1.
  virtual int max_depth() const = 0;
  virtual int max_nodes() const = 0;
  // Whether each node but the first must be the child of the node before it.
  virtual bool is_chain() const = 0;
  // Ids are below this.
  virtual int vocabulary_size() const = 0;
  virtual int n_nodes() const = 0;  // added so far

  // Adds a token chosen deterministically, as a child of an existing node. Returns its node. A
  // token drawn at random may be added this way too. It is then judged as if it were the only
  // choice: the emitted distribution is still exact, but the token is accepted less often.
  virtual int add(int parent, TokenId token) = 0;

  // Adds a token that the drafter has drawn from `distribution` with its own random numbers.
  // `distribution` must give the token a probability. Two conditions cannot be checked:
  // `distribution` is the distribution of the draw given all nodes before it, whatever its outcome,
  // and every drawn token is added. If either is violated, the emitted texts do not follow the
  // model's distribution (except at temperature 0 and with "coupled").
  virtual int add(int parent, TokenId token, const TokenDistribution& distribution) = 0;

  // A token that the engine drew, and its node.
  struct Drawn {
    int node = -1;
    TokenId token = kNoToken;
  };
  // Draws a token from `distribution` and adds it. The draw is a function of the request's seed,
  // the text's length and the node, so texts replay. With verify = "coupled" the first child of a
  // node uses the noise of plain sampling at its position, and is accepted more often.
  virtual Drawn draw(int parent, const TokenDistribution& distribution) = 0;
};

// Several texts may be active at once; keep state for each by its id. Calls come one at a time,
// from the thread that generates. An exception from begin(), propose() or observe() ends its text
// alone. It is thrown by Generator::generate(), or passed to the text's Batch::OnEnd.
class OwnDrafter {
 public:
  virtual ~OwnDrafter() = default;

  // A text begins; its tokens are the prompt. A preempted text (--kv-memory) ends and begins again;
  // its tokens then include what was generated before.
  virtual void begin(const OwnText& /*text*/) {}
  // Drafts the text's next tokens; may add none. Not called if there is no budget for any.
  virtual void propose(const OwnText& text, OwnDraft& draft) = 0;
  // Called after each round of the text, drafted or not, with the new tokens in `text`. accepted:
  // the accepted nodes of the last draft in text order; each is a child of the one before it. After
  // them the text has one more token, the model's own. A text that ends within the draft has fewer
  // tokens.
  virtual void observe(const OwnText& /*text*/, std::span<const int> /*accepted*/) {}
  // The text has ended, or was dropped from the texts that are kept for later prompts.
  virtual void end(std::int64_t /*id*/) noexcept {}
};

}  // namespace outrider

#endif  // OUTRIDER_OWN_DRAFTER_H_
