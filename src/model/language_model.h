// SPDX-License-Identifier: Apache-2.0
// The engine's interface of a language model: a forward pass over blocks of tokens of several
// sequences, each block a chain or a tree. Target and draft models implement it, and so do heads
// that draft from a target's hidden states (feature_head.h).
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

// How a sequence begins.
struct Prompt {
  // The encoder's input of an encoder-decoder, 1 to context_length tokens; decoders refuse it.
  std::span<const TokenId> encoder_tokens = {};
  // The expected number of tokens, kept and pending, for which growing lists reserve memory. A
  // hint: it takes no memory of the cache and limits nothing.
  int n_reserved = 0;
  // All tokens of the text that the sequence begins with, however many passes they take. In some
  // models a longer text needs another sequence from its first token on (context_of).
  int n_tokens = 0;
};

// Write and read bytes, one piece per call.
using ByteSink = std::function<void(std::span<const std::byte>)>;
using ByteSource = std::function<void(std::span<std::byte>)>;

// The keys and values of one sequence. First the kept tokens, positions 0 .. n_kept()-1; then the
// pending nodes of a tree, in the order in which forward() received them. A pending node's position
// is n_kept() + its depth (a child of the last kept token has depth 0).
//
// Not thread-safe. Two sequences of a model must not be used from two threads at a time either,
// since they share its pool.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual int n_kept() const = 0;
  virtual int n_pending() const = 0;

  // Keeps the pending nodes of a path (each the parent of the next, the first a child of the last
  // kept token) and drops all others. An empty path drops all pending nodes.
  virtual void keep(std::span<const int> path) = 0;

  // Drops all pending nodes and the kept tokens from position n_tokens on. Returns the number of
  // tokens kept now: n_tokens, or fewer if the state at that position is gone (for example of a
  // layer that keeps a window of positions). 0 is always possible. The caller must run the missing
  // tokens up to n_tokens again. Throws Error unless 0 <= n_tokens <= n_kept().
  virtual int rewind(int n_tokens) = 0;

  // rewind() for callers that cannot run tokens again: throws Error if fewer than n_tokens are kept
  // afterwards.
  void truncate(int n_tokens);

  // An independent copy of the kept tokens (pages are shared until one of the two writes).
  virtual std::unique_ptr<Sequence> fork() const = 0;
};

// New tokens of one sequence in this pass. They become pending nodes, after those already pending.
struct TokenBlock {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens;  // (n), n >= 1
  std::span<const int> parents;     // (n) each token's parent among the sequence's pending nodes
                                    // (those of earlier passes first, then this block's); -1 = the
                                    // last kept token. A parent precedes its child. Empty = a chain
                                    // after the last pending node.
  // (n, dim), for feature heads: the state of each token (feature_head.h). Empty for models that
  // read tokens alone.
  std::span<const float> features = {};
};

// Tokens that a sequence is about to add.
struct SequenceGrowth {
  const Sequence* sequence = nullptr;
  int n_tokens = 0;
};

// The rows of a pass that get logits. Rows are numbered through the blocks in order.
struct RowSet {
  enum class Kind { none, last_of_each_block, all, listed };
  Kind kind = Kind::all;
  std::span<const int> rows = {};  // listed: ascending
};

struct ForwardRequest {
  RowSet logits = {};
  // The model's hidden states that every row of the pass returns, in this order. 0 is the input of
  // the first layer, the token's embedding; l is the residual stream after l layers; n_layers is
  // the input of the head, after the final norm. (Hugging Face numbers hidden_states in the same
  // way.)
  std::span<const int> feature_layers = {};
  // Layers, numbered from 0, that the pass skips: the residual stream bypasses them. Ascending.
  // Keys and values of such a pass differ from the whole model's. So all passes over a sequence
  // skip the same layers, from its first token on.
  std::span<const int> skip_layers = {};
};

// Reused from pass to pass; grows only.
struct ForwardOutput {
  LogitRows logits;             // of the rows requested
  int feature_width = 0;        // feature_layers.size() * dim
  std::vector<float> features;  // (rows of the pass, feature_width): a row's layers side by side
  // For a mixture of experts: the experts used by some row of the pass, per layer (mean over
  // layers); each was read once. 0: no experts.
  double experts_a_layer = 0;

  // No rows, until the next pass.
  void clear() {
    logits.clear();
    feature_width = 0;
    experts_a_layer = 0;
  }

  // All logits of a row, for callers that need them all.
  std::span<const float> logits_row(int row) const { return logits.row(row).values(); }
  // Counts all rows of the pass, with or without logits.
  std::span<const float> feature_row(int row) const {
    return {features.data() + static_cast<std::size_t>(row) * feature_width,
            static_cast<std::size_t>(feature_width)};
  }
};

// Memory and kernels of a model, as information for users. Sizes in bytes.
struct Footprint {
  const char* kernels = "";  // the kernel table's name
  std::string device = {};   // that passes run on: its name; empty: the processor
  std::string weights;       // kinds of the packed matrices, for example "int4 int8"
  const char* kv = "";       // cache type
  std::int64_t n_parameters = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t max_kv_bytes = 0;  // of the cache of all texts, on this rank; 0: no limit
  std::int64_t idle_bytes = 0;    // of weight_bytes: experts that a one-row pass does not read
  std::int64_t mapped_bytes = 0;  // of weight_bytes: experts that stay in their file
  std::int64_t expert_memory_bytes = 0;   // memory for those of them that are packed
  std::int64_t state_bytes = 0;           // of recurrent layers: a sequence's state at one token
  std::int64_t input_bytes_per_node = 0;  // and what each of its pending nodes keeps
  // Packed matrices by type, the embedding only if it is the output matrix.
  struct Share {
    const char* kind = "";
    std::int64_t n_weights = 0;
    std::int64_t n_bytes = 0;
  };
  std::vector<Share> shares = {};
  std::vector<int> rank_threads = {};  // (n_ranks) threads of each rank; empty: one process
  std::vector<int> windows = {};       // (n_layers) tokens that a query reads back; 0: all
};

// Logits and features of a row depend, bit for bit, only on the row's token, position and
// ancestors. They do not depend on the other rows or blocks of the pass, on how the ancestors were
// run (prefill, decode, tree), or on the number of threads. One pass at a time per model.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual const ModelConfig& config() const = 0;
  virtual Footprint footprint() const = 0;
  // Settings of its files that are not followed, a line each, as information for users.
  virtual std::vector<std::string> warnings() const { return config().warnings; }
  // Why the model cannot be used any more: another process with a part of it is lost, or its device
  // is. Empty: it can be used. Thread-safe.
  virtual std::string failure() const { return {}; }
  virtual std::unique_ptr<Sequence> open(const Prompt& prompt) = 0;
  // Runs the encoder over the sequence's encoder input, if that is not done; otherwise forward()
  // does it. Throws Error if the cache's memory does not hold it; nothing has changed then. Does
  // nothing for decoders.
  virtual void encode(Sequence& /*sequence*/) {}

  // Throws Error if a token is outside the vocabulary, a parent is invalid, a position is beyond
  // the context, or a feature layer or a layer to skip is beyond the model. Throws also if a
  // sequence was run with other skipped layers. Nothing has changed then. Throws Error, too, if a
  // device or another rank is lost during the pass; the sequences are then unusable, and the output
  // has no rows: neither those of the pass nor earlier ones.
  virtual void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                       ForwardOutput& output) = 0;

  // A fork of a sequence for passes that skip these layers (ForwardRequest). It needs the keys and
  // values that passes without these layers would have left; nullptr if they differ. They are equal
  // if this model ran the whole sequence and the layers are its last ones (an early exit): a
  // layer's keys and values depend only on earlier layers. Passes over the fork do not affect the
  // sequence. The default returns nullptr.
  virtual std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                                 std::span<const int> skip_layers) const;

  // The maximum number of tokens of a text in this sequence. A longer text must be run again in a
  // sequence opened for its length: models with longrope rotate all keys of long texts by other
  // angles.
  virtual int context_of(const Sequence& /*sequence*/) const { return config().context_length; }

  // Whether the KV cache has memory for the given numbers of further tokens of these sequences,
  // each listed once, in passes of at most kPrefillRows rows of one of them. forward() throws if it
  // has not. Always true for models without a limit.
  virtual bool fits(std::span<const SequenceGrowth> /*growths*/) const { return true; }

  // Saves the kept tokens of a sequence as bytes, and restores a sequence from them, possibly in
  // another process. It continues with the same bits if the model, its kernels and the cache's type
  // are the same; the bytes do not identify these. save() requires that no nodes are pending.
  // restore() throws Error for bytes of another shape or number of tokens, and if memory does not
  // hold them. The default throws: not supported.
  virtual void save(const Sequence& sequence, const ByteSink& write) const;
  virtual std::unique_ptr<Sequence> restore(int n_tokens, const ByteSource& read);

  // The number of tokens that fit on one path after a sequence's kept tokens and `next`; below 0 if
  // these exceed the sequence's context.
  virtual int remaining_context(const Sequence& sequence, std::span<const TokenId> next) const {
    return context_of(sequence) - sequence.n_kept() - static_cast<int>(next.size());
  }

  // The model's input and output matrices, for heads that draft from its features. embed: tokens
  // (n) to out (n, dim). project: features (n, dim), as of feature layer n_layers, to output's
  // logits (n, vocabulary_size), with the bits that forward would give. Both throw Error on sizes
  // that do not fit, on tokens outside the vocabulary, and if a model does not support this (the
  // default).
  virtual void embed(std::span<const TokenId> tokens, std::span<float> out);
  virtual void project(std::span<const float> features, ForwardOutput& output);
  // A second copy of the output matrix (vocabulary_size, dim), in that type of weights, made from
  // the stored one, if it takes fewer bytes than the one that project() reads. Empty otherwise, and
  // if a model does not support this (the default).
  virtual std::optional<Matrix> narrower_output(WeightKind kind) const;
  // The pass that writes the keys and values of this model's sequences, for heads that read them.
  // Null if not available (the default).
  virtual const CpuPass* key_writer() const { return nullptr; }
  // The transformation of the output matrix's products in project().
  virtual LogitForm logit_form() const { return {}; }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LANGUAGE_MODEL_H_
