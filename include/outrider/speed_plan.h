// SPDX-License-Identifier: Apache-2.0
// Predicts the cost of a pass on a device, and what drafts gain there, from public model shapes and
// data sheets. Nothing is run, except by check_plan, which measures how accurate the prediction is.
//
//   const auto target = outrider::find_shape("llama-3.1-70b");
//   const auto drafter = outrider::find_shape("llama-3.2-1b");
//   const auto device = outrider::find_device("h200");
//   outrider::SpeedPlanOptions options;
//   options.weights = "q4_k";
//   const auto plan = outrider::plan_speedup(target, &drafter, device, options);
//   std::cout << plan.best.speedup << " with " << plan.best.n_nodes << " tokens\n";
//
// The time of a pass is the sum over kinds of work. Each takes the longer of its memory time and
// its arithmetic time (Williams, Waterman and Patterson 2009, "Roofline"):
//
//   products    max(bytes of weights / bandwidth, 2 * weights * rows / peak)
//   attention   max(bytes of keys and values / bandwidth, 4 * dims * rows * context / peak)
//   rows        bytes that norms, rotations, gates and residuals read and write
//   logits      4 bytes * vocabulary * rows, written
//   fixed       per pass, where the device has a figure
//
// All figures are for one device that holds the whole model. All functions are thread-safe except
// check_plan, which measures time.
#ifndef OUTRIDER_SPEED_PLAN_H_
#define OUTRIDER_SPEED_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/measure.h"
#include "outrider/model.h"

namespace outrider {

// Weights of one type in a model's products. Every matrix counts once. The embedding counts only if
// it is also the output matrix.
struct WeightShare {
  std::string type;  // "bf16", "q4_k", ...
  double n_weights = 0;
  double n_bytes = 0;
};

// The sizes that determine a decoder's cost.
struct ModelShape {
  std::string name;
  int n_layers = 0;
  int dim = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int hidden_dim = 0;  // of an MLP; with experts, of each
  int vocabulary_size = 0;
  bool tied_head = false;  // the output matrix is the embedding
  int n_experts = 0;       // of each layer; 0: one MLP
  int n_active = 0;        // experts that a token uses
  bool has_gate = true;    // an MLP has three matrices; else two
  int n_window_layers = 0;
  int window = 0;                        // tokens that those layers read back
  std::vector<WeightShare> stored = {};  // of a file; empty: of a public shape

  double attention_weights() const;          // of all layers
  double mlp_weights() const;                // of all layers and experts
  double head_weights() const;               // the output matrix
  double n_parameters() const;               // these, and the embedding if it is another matrix
  double kv_elements() const;                // elements per token in all layers
  double positions_read(int context) const;  // tokens before a row times the layers that read them
};

// Names of the public shapes, each from a model card's config.json.
std::vector<std::string> known_shapes();
// Returns a public shape by name, or the shape of the model at a path (as for Model::load), by its
// headers. Throws UsageError with all names if there is neither; Error for files.
ModelShape find_shape(const std::string& name_or_path);

// Expected experts per layer that n_rows rows use together, if each row draws n_active of them
// independently and uniformly: n_experts (1 - (1 - n_active / n_experts)^n_rows). Real passes read
// fewer: routers are less uniform, and neighbouring tokens are similar.
double expected_experts(const ModelShape& shape, double n_rows);

// Bytes per weight of that type, scales included. Throws UsageError that lists the types.
double bytes_per_weight(std::string_view type);
std::vector<std::string> known_weights();

// Measured time of a device's products with one type of weights.
struct ProductRate {
  std::string type;
  int rows = 1;
  double seconds_per_weight = 0;  // of a pass of `rows` rows
};

// The rates of a device. A public device has the data sheet's dense figures, for exclusive use.
struct Device {
  std::string name;
  std::string source;                     // of the figures
  double bandwidth_bytes_per_second = 0;  // of its memory
  // Operations of products per second; a multiply-add is two. Attention counts as bf16, f32 as half
  // of that.
  double bf16_ops_per_second = 0;
  double fp8_ops_per_second = 0;   // 0: not in the data sheet; bf16's figure is used
  double int8_ops_per_second = 0;  // 0: as for fp8
  double fixed_seconds = 0;        // of every pass; 0: unknown
  // For a measured device, instead of the data sheet's figures: products by type and rows
  // (ascending, interpolated linearly); elements of rows per second; keys and values prepared per
  // second, and the operations of attention after that.
  std::vector<ProductRate> products = {};
  double row_elements_per_second = 0;
  double kv_elements_per_second = 0;
  double attention_ops_per_second = 0;

  bool is_measured() const { return !products.empty(); }
};

std::vector<std::string> known_devices();
// Throws UsageError that lists the names.
Device find_device(std::string_view name);

// A pass over the same number of rows of several sequences.
struct PassOnPaper {
  std::string weights = {};  // type of all matrices; empty: as stored, bf16 for public shapes
  int rows = 1;              // of each sequence: the draft and its root
  int context = 0;           // tokens before, of each
  int batch = 1;             // sequences
};

// The parts of a pass in seconds.
struct PassSeconds {
  double products = 0;
  double attention = 0;
  double rows = 0;
  double logits = 0;
  double fixed = 0;
  // The part of all these that is limited by memory rather than by arithmetic.
  double memory_bound = 0;
  double weight_bytes = 0;   // read
  double product_ops = 0;    // two per weight and row
  double cache_bytes = 0;    // keys and values read
  double attention_ops = 0;  // scores and sums of values

  double total() const { return products + attention + rows + logits + fixed; }
  bool waits_for_memory() const { return memory_bound * 2 >= total(); }
};

// Keys and values are bf16. Throws UsageError for numbers below 1 (context: 0), unknown types, a
// shape without its sizes, and a device without a bandwidth or bf16 figure.
PassSeconds pass_seconds(const ModelShape& shape, const PassOnPaper& pass, const Device& device);

struct SpeedPlanOptions {
  // The probability that a drafted token is accepted. Several values: by the rank of a child among
  // its siblings, as TreeProfile::accept_by_rank; then drafts are trees.
  std::vector<double> acceptance = {0.7};
  int length = -1;  // of the chain that is shown beside the best; -1: the best
  std::string weights = {};
  int context = 1024;
  int batch = 1;
};

// A round with one draft.
struct PlannedRound {
  std::vector<int> level_sizes = {};  // of the draft, below its root; a chain's are 1
  int n_nodes = 0;
  double tau = 1;            // expected tokens
  double draft_seconds = 0;  // levels of the drafter; 0 without one
  double pass_seconds = 0;   // of the target over the draft and its root
  bool waits_for_memory = true;
  double speedup = 1;  // tau * a pass of one row / (draft_seconds + pass_seconds)
};

struct SpeedPlan {
  PassSeconds plain;  // of the target over one row
  PlannedRound asked;
  PlannedRound best;  // the fastest: no nodes where no draft pays
};

// Limits: the longest chain considered, and the most nodes of a tree (as in `outrider tune tree`;
// 64 rows with the root).
inline constexpr int kLongestPlannedChain = 16;
inline constexpr int kMaxPlannedNodes = 63;

// Expected tokens of a round with a chain of this length whose tokens are accepted independently:
// (1 - a^(n+1)) / (1 - a) (Leviathan et al. 2023, equation 1).
double chain_tau(double acceptance, int length);

// `drafter` may be null for drafts without cost; text lookup is close to that. Chains use the first
// acceptance alone. Throws UsageError for acceptances outside 0..1 or with a sum above 1, and for
// invalid lengths.
SpeedPlan plan_speedup(const ModelShape& target, const ModelShape* drafter, const Device& device,
                       const SpeedPlanOptions& options);

struct CheckOptions {
  std::vector<int> rows = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
  std::vector<int> contexts = {0, 1024, 4096};  // ascending; beyond the model's context: cut
  int rounds = 5;
  MeasureProgress progress = {};
};

// One number of rows after one context.
struct CheckedPass {
  int context = 0;
  int rows = 1;
  double measured_seconds = 0;  // median
  double predicted_seconds = 0;
  // Predicted as for a data sheet: from bandwidth and peak of products alone.
  double roofline_seconds = 0;
  bool calibrated = false;  // used to calibrate the device, so no prediction
  double ratio() const { return predicted_seconds / measured_seconds; }
  double roofline_ratio() const { return roofline_seconds / measured_seconds; }
};

struct PlanCheck {
  Device device;  // as measured
  std::vector<CheckedPass> passes;
  int n_predicted() const;
  // Of the predicted ones, the number of ratios within 1 - share to 1 + share.
  int n_near(double share) const;
  int n_near_roofline(double share) const;
};

// Measures memory, products and row work on this machine separately, in turn with passes of the
// model. Two passes, the narrowest and the widest at the longest context, calibrate attention.
// Throws as measure_passes does.
PlanCheck check_plan(const Model& model, const CheckOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_SPEED_PLAN_H_
