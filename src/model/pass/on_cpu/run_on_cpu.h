// SPDX-License-Identifier: Apache-2.0
// Runs a list of ops on the CPU: its buffers, its KV cache, and one team of threads per pass.
#ifndef OUTRIDER_MODEL_PASS_ON_CPU_RUN_ON_CPU_H_
#define OUTRIDER_MODEL_PASS_ON_CPU_RUN_ON_CPU_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/table.h"
#include "model/cache/kv_sequence.h"
#include "model/config.h"
#include "model/language_model.h"
#include "model/pass/attention_work.h"
#include "model/pass/op.h"
#include "model/pass/pass_executor.h"
#include "model/pass/pass_plan.h"
#include "model/pass/rank_gather.h"
#include "model/pass/routing.h"
#include "model/pass/schedule.h"
#include "model/pass/state_walk.h"
#include "tensor/matrix.h"
#include "tensor/team.h"

namespace outrider {

// See PassExecutor; rows of the list's inputs are filled before run(). A row's bits do not depend
// on the number of threads.
class CpuPass final : public PassExecutor {
 public:
  struct Machine {
    const KernelTable* table = nullptr;  // the one for which the weights are packed
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t max_cache_bytes = PagePool::kUnbounded;
    std::string cache_limit = KvCache::kLimit;  // the name of max_cache_bytes in messages
    int n_threads = 1;
    // For a list with only a rank's part of the columns: gathers them. Must outlive the pass.
    Communicator* ranks = nullptr;
  };

  // config and the weights that the list refers to must outlive the pass. Throws UsageError if the
  // cache's type does not fit the heads.
  CpuPass(PassList list, const ModelConfig& config, const Machine& machine);
  // A second pass over another's sequences: its list has the same caches.
  CpuPass(PassList list, const CpuPass& other);
  // For lists without embeddings and attention; used with prepare_rows only.
  CpuPass(PassList list, const Machine& machine);

  void prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request) override {
    prepare(blocks, request.logits, request.skip_layers);
  }
  void prepare(std::span<const TokenBlock> blocks, const RowSet& logits,
               std::span<const int> skip_layers = {});
  // Rows that attend to sequences of this cache and store nothing (PassPlan). For lists whose
  // attentions all read the keys of other layers. Throws Error also if has_keys_for_readers() is
  // false.
  void prepare_readers(std::span<const KeyReaders> readers);
  // Whether it is a sequence of this cache and has the keys that such rows read. A window of the
  // list may be longer than that of the layer whose keys it reads. Then some keys are missing after
  // a rewind as far as the sequence's own windows allow.
  bool has_keys_for_readers(const Sequence& sequence) const;
  // n_rows rows without sequence, all with logits.
  void prepare_rows(int n_rows);
  // Row i of one of the list's buffers: (rows.width).
  float* row(const Rows& rows, std::int64_t i);
  // Throws LostRank, and nothing else, if a rank is lost; this object is unusable then.
  void run(const Outputs& outputs) override;

  const KernelTable& table() const { return *machine_.table; }
  double experts_a_layer() const override { return routing_.touched_a_layer(); }
  // The size of the buffer for columns from other ranks, in floats; for tests.
  std::size_t n_gathered() const { return gather_.n_room(); }
  // Barriers of a pass over the whole list, except those within attention that several threads
  // share (attention_work.h).
  int n_barriers() const { return count_barriers(schedule(list_, {}, false)); }

  // A pass uses only as many threads as leave each at least this share of every layer, by estimate
  // (thread_share.h derives the default). Bits do not depend on it; 0: always all threads, for
  // tests.
  void set_min_share_ns(std::int64_t share_ns) { min_share_ns_ = share_ns; }
  // Called by every thread before every op, for tests that delay threads.
  void set_before_op(std::function<void(int thread, const Step& step)> before_op) {
    before_op_ = std::move(before_op);
  }

 private:
  friend struct CpuOps;  // cpu_ops.cc: the ops

  // The angles of one RoPE table, for each row of the pass.
  struct Angles {
    int half = 0;                // rotated pairs
    std::vector<float> cosines;  // (n_rows, half)
    std::vector<float> sines;    // (n_rows, half)
    // (n_rows): the scale of rotated queries; empty if the table has none.
    std::vector<float> query_scales;
  };

  CpuPass(PassList list, const ModelConfig* config, const Machine& machine,
          const CpuPass* with_cache);
  void expect(int n_tokens) override {
    for (const auto& work : attention_) work->expect(n_tokens);
  }
  void measure_work();
  void make_attention();
  void resize_scratch();
  int n_threads() const;

  Machine machine_;
  Schedules schedules_;
  // One per shape of heads, and which one each cache layer uses; null: no op reads it.
  std::vector<std::unique_ptr<AttentionWork>> attention_;
  std::vector<AttentionWork*> attention_of_;  // (n_layers of the cache)
  // Per layer on average; of the list, if it has no layers. Experts count as for one row.
  std::int64_t weight_bytes_ = 0;
  std::int64_t products_per_row_ = 0;
  std::int64_t min_share_ns_;

  std::vector<Activations> buffers_;
  std::vector<Angles> angles_;
  Routing routing_;
  RankGather gather_;
  int max_experts_ = 0;  // the most of a layer; 0: no experts
  int max_used_ = 0;
  std::vector<float> ones_;  // as wide as the widest single-factor gate, and as channels
  // For lists with a state per node: a delta rule's, Mamba-2's.
  StateWalks walks_;
  std::size_t slot_floats_ = 0;     // of some of a state's columns, equal in all layers; or 0
  std::vector<float> delta_slots_;  // (n_threads, walks_.n_slots(), slot_floats_)
  const std::vector<Step>* steps_ = nullptr;  // for this pass
  Outputs outputs_;
  std::function<void(int, const Step&)> before_op_;  // may be empty
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_CPU_RUN_ON_CPU_H_
