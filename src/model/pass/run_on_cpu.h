// Runs a list of ops on the CPU: its buffers, its KV cache, and one team of threads a pass.
#ifndef OUTRIDER_MODEL_PASS_RUN_ON_CPU_H_
#define OUTRIDER_MODEL_PASS_RUN_ON_CPU_H_

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

// As PassExecutor says; rows of the list's inputs are filled before run(). A row's bits do not
// depend on the number of threads.
class CpuPass final : public PassExecutor {
 public:
  struct Machine {
    const KernelTable* table = nullptr;  // the one the weights are packed for
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t most_cache_bytes = PagePool::kUnbounded;
    std::string cache_limit = KvCache::kLimit;  // what most_cache_bytes are, for messages
    int n_threads = 1;
    // Of a list that has a rank's part of the columns alone: what gathers them. Outlives the pass.
    Communicator* ranks = nullptr;
  };

  // config outlives the pass, and so do the weights that the list refers to. Throws UsageError
  // where the cache's type does not fit the heads.
  CpuPass(PassList list, const ModelConfig& config, const Machine& machine);
  // A second pass over another's sequences: its list has the same caches.
  CpuPass(PassList list, const CpuPass& other);
  // For lists without embeddings and attention, run with lay_out_rows alone.
  CpuPass(PassList list, const Machine& machine);

  void lay_out(std::span<const TokenBlock> blocks, const ForwardRequest& request) override {
    lay_out(blocks, request.logits, request.skip_layers);
  }
  void lay_out(std::span<const TokenBlock> blocks, const RowSet& logits,
               std::span<const int> skip_layers = {});
  // Rows that attend to sequences of this cache and leave nothing there (PassPlan). For lists whose
  // attentions all read the keys of other layers. Throws Error, too, where has_keys_for_readers()
  // says no.
  void lay_out_readers(std::span<const KeyReaders> readers);
  // Whether it is a sequence of this cache and has the keys that such rows read. A window of the
  // list may be longer than that of the layer whose keys it reads: these are gone in part where the
  // sequence was rewound as far as its own windows allow.
  bool has_keys_for_readers(const Sequence& sequence) const;
  // n_rows rows of no sequence, all of them asked for.
  void lay_out_rows(int n_rows);
  // Row i of one of the list's buffers: (rows.width).
  float* row(const Rows& rows, std::int64_t i);
  // Throws LostRank where a rank is lost, and then alone; this one is of no use then.
  void run(const Outputs& outputs) override;

  const KernelTable& table() const { return *machine_.table; }
  double experts_a_layer() const override { return routing_.touched_a_layer(); }
  // Floats of the room for what comes from other ranks, for tests.
  std::size_t n_gathered() const { return gather_.n_room(); }
  // Barriers of a pass over the whole list, but those within attention that several threads share
  // (attention_work.h).
  int n_barriers() const { return count_barriers(schedule(list_, {}, false)); }

  // A pass runs on no more threads than leave each this long a share of every layer, by estimate
  // (thread_share.h derives the default). Bits do not depend on it; 0: always all threads, for
  // tests.
  void set_least_share_ns(std::int64_t share_ns) { least_share_ns_ = share_ns; }
  // Called by every thread before every op, for tests that delay threads.
  void set_before_op(std::function<void(int thread, const Step& step)> before_op) {
    before_op_ = std::move(before_op);
  }

 private:
  friend struct CpuOps;  // cpu_ops.cc: what each op does

  // The angles of one RoPE table: a row for each row of the pass.
  struct Angles {
    int half = 0;                // pairs that turn
    std::vector<float> cosines;  // (n_rows, half)
    std::vector<float> sines;    // (n_rows, half)
    // (n_rows): what turned queries are multiplied by; empty where the table has no such scaling.
    std::vector<float> query_scales;
  };

  CpuPass(PassList list, const ModelConfig* config, const Machine& machine,
          const CpuPass* with_cache);
  void expect(int n_tokens) override {
    for (const auto& work : attention_) work->expect(n_tokens);
  }
  void measure_work();
  void make_attention();
  void make_room();
  int n_threads() const;

  Machine machine_;
  Schedules schedules_;
  // One for each form of heads, and whose each layer of the cache is; null: no op reads it.
  std::vector<std::unique_ptr<AttentionWork>> attention_;
  std::vector<AttentionWork*> attention_of_;  // (n_layers of the cache)
  // Of one layer on average; without layers, of the list. Of experts, those of one row.
  std::int64_t weight_bytes_ = 0;
  std::int64_t products_per_row_ = 0;
  std::int64_t least_share_ns_;

  std::vector<Activations> buffers_;
  std::vector<Angles> angles_;
  Routing routing_;
  RankGather gather_;
  int most_experts_ = 0;  // of the list's layers; 0: no experts
  int most_used_ = 0;
  std::vector<float> ones_;  // as wide as the widest gate without a second factor, and as channels
  // Of lists with states of nodes: a delta rule's, Mamba-2's.
  StateWalks walks_;
  std::size_t slot_floats_ = 0;               // of a state's columns, alike in all layers; or 0
  std::vector<float> delta_slots_;            // (n_threads, walks_.n_slots(), slot_floats_)
  const std::vector<Step>* steps_ = nullptr;  // of this pass
  Outputs outputs_;
  std::function<void(int, const Step&)> before_op_;  // may be empty
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_RUN_ON_CPU_H_
