// A language model as the engine sees it: a forward pass over blocks of tokens of several
// sequences, each block a chain or a tree. Target and draft models stand behind this, and so do
// heads that draft from a target's hidden states (feature_head.h).
#ifndef OUTRIDER_MODEL_LANGUAGE_MODEL_H_
#define OUTRIDER_MODEL_LANGUAGE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/logit_form.h"
#include "model/logit_rows.h"
#include "outrider/types.h"
#include "tensor/matrix.h"

namespace outrider {

class CpuPass;

// What a sequence starts from.
struct Prompt {
  // What an encoder-decoder's encoder reads, 1 to context_length tokens; decoders refuse them.
  std::span<const TokenId> encoder_tokens = {};
  // Tokens, kept and pending, that the sequence is expected to have: lists that grow with it get
  // room for so many at once. A hint: it takes no memory of the cache and limits nothing.
  int n_reserved = 0;
  // Tokens of the text that the sequence begins with, all of them, however many passes they take:
  // in some models a longer text is another sequence from its first token on (context_of).
  int n_tokens = 0;
};

// Take and give bytes, a piece a call.
using ByteSink = std::function<void(std::span<const std::byte>)>;
using ByteSource = std::function<void(std::span<std::byte>)>;

// The keys and values of one sequence. First come the kept tokens, positions 0 .. n_kept()-1;
// behind them the pending nodes of a tree, in the order in which forward() was given them. A
// pending node's position is n_kept() + its depth (a child of the last kept token has depth 0).
//
// Not thread-safe; two sequences of a model may not be used from two threads at a time either,
// since they share its pool.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual int n_kept() const = 0;
  virtual int n_pending() const = 0;

  // Keeps the pending nodes of a path (each the parent of the next, the first a child of the last
  // kept token) and drops all others. An empty path drops all pending nodes.
  virtual void keep(std::span<const int> path) = 0;

  // Drops all pending nodes and the kept tokens from position n_tokens on. Returns how many tokens
  // are kept now: n_tokens, or fewer where the state at that place is gone (of a layer that keeps a
  // window of positions, say). 0 can always be reached. What was dropped beyond n_tokens has to be
  // run again. Throws Error unless 0 <= n_tokens <= n_kept().
  virtual int rewind(int n_tokens) = 0;

  // rewind(), for callers that cannot run tokens again: throws Error where the sequence stands
  // before n_tokens afterwards.
  void truncate(int n_tokens);

  // An independent copy of the kept tokens (pages are shared until one of the two writes).
  virtual std::unique_ptr<Sequence> fork() const = 0;
};

// New tokens of one sequence in this pass. They become pending nodes, behind those already pending.
struct TokenBlock {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens;  // (n), n >= 1
  std::span<const int> parents;     // (n) each token's parent among the sequence's pending nodes
                                    // (those of earlier passes first, then this block's), -1 = the
                                    // last kept token; a parent precedes its child. Empty = a chain
                                    // behind the last pending node.
  // (n, dim), for feature heads: the state that goes with each token (feature_head.h). Empty for
  // models that read tokens alone.
  std::span<const float> features = {};
};

// Tokens that a sequence is going to have behind those that are there.
struct SequenceGrowth {
  const Sequence* sequence = nullptr;
  int n_tokens = 0;
};

// Which rows of a pass get logits. Rows count through the blocks in order.
struct RowSet {
  enum class Kind { none, last_of_each_block, all, listed };
  Kind kind = Kind::all;
  std::span<const int> rows = {};  // listed: ascending
};

struct ForwardRequest {
  RowSet logits = {};
  // Which of the model's hidden states every row of the pass leaves behind, in this order: 0 is
  // what the first layer reads, the token's embedding, l the residual stream after l layers, and
  // n_layers what the head reads, the final norm applied (Hugging Face numbers hidden_states in the
  // same way).
  std::span<const int> feature_layers = {};
  // Layers, numbered from 0, that the pass leaves out: the residual stream goes past them as it is.
  // Ascending. What such a pass leaves in a sequence is its own: all passes over a sequence leave
  // out the same layers, from its first token on.
  std::span<const int> skip_layers = {};
};

// Reused from pass to pass; grows only.
struct ForwardOutput {
  LogitRows logits;             // of the rows asked for
  int feature_width = 0;        // feature_layers.size() * dim
  std::vector<float> features;  // (rows of the pass, feature_width): a row's layers side by side
  // Of a mixture of experts: those that some row of the pass used, of a layer on average, each of
  // which was read once. 0: no experts.
  double experts_a_layer = 0;

  // All logits of a row that has some, for those who need no less.
  std::span<const float> logits_row(int row) const { return logits.row(row).values(); }
  // Counts all rows of the pass, with or without logits.
  std::span<const float> feature_row(int row) const {
    return {features.data() + static_cast<std::size_t>(row) * feature_width,
            static_cast<std::size_t>(feature_width)};
  }
};

// What a model occupies and computes with, for people to read. Sizes in bytes.
struct Footprint {
  const char* kernels = "";  // the kernel table's name
  std::string device = {};   // that passes run on: its name; empty: the processor
  std::string weights;       // kinds of the packed matrices, for example "int4 int8"
  const char* kv = "";       // cache type
  std::int64_t n_parameters = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t idle_bytes = 0;    // of weight_bytes: experts that a pass over one row does not read
  std::int64_t mapped_bytes = 0;  // of weight_bytes: experts that stay in their file
  std::int64_t expert_memory_bytes = 0;   // and the memory for those of them that are packed
  std::int64_t state_bytes = 0;           // of recurrent layers, a sequence's at one token
  std::int64_t input_bytes_per_node = 0;  // and what each of its pending nodes keeps
  // Packed matrices by kind, the embedding only where it is the output matrix.
  struct Share {
    const char* kind = "";
    std::int64_t n_weights = 0;
    std::int64_t n_bytes = 0;
  };
  std::vector<Share> shares = {};
  std::vector<int> windows = {};  // (n_layers) tokens that a query reads back; 0: all
};

// Logits and features of a row depend on the row's token, position and ancestors alone, bit for
// bit: not on the other rows or blocks of the pass, not on how the ancestors came (prefill, decode,
// tree), not on the number of threads. One pass at a time per model.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual const ModelConfig& config() const = 0;
  virtual Footprint footprint() const = 0;
  // What its files say that is not followed, a line each, for people to read.
  virtual std::vector<std::string> warnings() const { return config().warnings; }
  // Why it is of no use from now on: a part of it that another process had is lost. Empty: it is.
  // May be asked from any thread.
  virtual std::string failure() const { return {}; }
  virtual std::unique_ptr<Sequence> open(const Prompt& prompt) = 0;
  // Runs the encoder over what the sequence was opened with, where that is not done: forward() does
  // it for those that nobody asked this for. Throws Error where the cache's memory does not hold
  // it; nothing has changed then. Of decoders: nothing.
  virtual void encode(Sequence& /*sequence*/) {}

  // Throws Error if a token is outside the vocabulary, a parent out of place, a position beyond the
  // context, a feature layer or a layer to skip beyond the model, or if a sequence has been run
  // without other layers than these; nothing has changed then.
  virtual void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                       ForwardOutput& output) = 0;

  // A fork of a sequence for passes that leave these layers out (ForwardRequest), on the keys and
  // values that passes without them would have left: nullptr where those are others. They are the
  // same if this model ran the sequence whole and the layers are its last ones, an early exit: what
  // a layer leaves depends on those before it alone. The sequence itself never sees what passes
  // over the fork leave. The default has no such forks.
  virtual std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                                 std::span<const int> skip_layers) const;

  // How many tokens a text may have in this sequence. A longer one is run anew in a sequence that
  // was opened for so many tokens: models with longrope turn all keys of long texts by other
  // angles.
  virtual int context_of(const Sequence& /*sequence*/) const { return config().context_length; }

  // Whether the memory of the KV cache holds so many further tokens of these sequences, each of
  // which is there once, in passes of kPrefillRows of one of them at most. forward() throws where
  // it does not. Models without a limit: always.
  virtual bool fits(std::span<const SequenceGrowth> /*growths*/) const { return true; }

  // The kept tokens of a sequence as bytes, and a sequence of such bytes, perhaps in another
  // process: it goes on with the same bits where the model, its kernels and its cache's type are
  // the same, which the bytes do not tell. save() wants no pending nodes. restore() throws Error
  // for bytes of another shape or number of tokens, and where the memory does not hold them. Models
  // that cannot (the default) throw.
  virtual void save(const Sequence& sequence, const ByteSink& write) const;
  virtual std::unique_ptr<Sequence> restore(int n_tokens, const ByteSource& read);

  // How many tokens could still follow on one path behind a sequence's kept tokens and `next`;
  // below 0 where these do not fit into the sequence's context.
  virtual int room(const Sequence& sequence, std::span<const TokenId> next) const {
    return context_of(sequence) - sequence.n_kept() - static_cast<int>(next.size());
  }

  // What heads that draft from the model's features borrow of it: its input and its output matrix.
  // embed: tokens (n) to out (n, dim). project: features (n, dim), as feature layer n_layers has
  // them, to output's logits (n, vocabulary_size), the bits that forward would give. Throw Error on
  // sizes that do not fit, on tokens outside the vocabulary, and where a model lends nothing (the
  // default).
  virtual void embed(std::span<const TokenId> tokens, std::span<float> out);
  virtual void project(std::span<const float> features, ForwardOutput& output);
  // The output matrix (vocabulary_size, dim) once more, in that kind of weights, if that takes
  // fewer bytes than the one that project() reads; made anew from what was stored. None otherwise,
  // and where a model lends nothing (the default).
  virtual std::optional<Matrix> narrower_output(WeightKind kind) const;
  // For heads that read the keys and values of this model's sequences: the pass that writes them.
  // Null where they are not to be had (the default).
  virtual const CpuPass* key_writer() const { return nullptr; }
  // What project() makes of the products with the output matrix.
  virtual LogitForm logit_form() const { return {}; }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LANGUAGE_MODEL_H_
