// SPDX-License-Identifier: Apache-2.0
// Trains multi-token prediction modules for a frozen model (train/modules/mtp_module.h).
#ifndef OUTRIDER_TRAIN_OBJECTIVES_MTP_H_
#define OUTRIDER_TRAIN_OBJECTIVES_MTP_H_

#include <filesystem>
#include <memory>

#include "train/objectives/head_run.h"

namespace outrider::train {

class Objective;

struct MtpOptions {
  HeadRun run = {};
  std::filesystem::path target_directory = {};  // where run.target was loaded from
  int n_modules = 1;
  bool alone = false;  // export only the modules
};

// loss = mean over the modules of their mean cross-entropies (eq. 25 of arXiv 2412.19437 without
// lambda, the weight against the model's own loss). Module k of 1 .. n_modules predicts the token k
// places after the one that the target predicts. Log and held out: "loss_k", "agreement_k",
// "overlap_k" as in medusa.h; held out also "loss".
//
// Exports a copy of the target's directory with the modules added: the target's weight files
// unchanged under the names of shards, one more shard, an index, and "num_nextn_predict_layers" in
// config.json. Loaders without support for modules read it as the target. Throws UsageError for
// n_modules < 1, for a target that is no Hugging Face directory, and for one with these modules.
// `alone`: exports a model.safetensors of the modules and a config.json of the target's shape with
// that key; works with any target.
std::shared_ptr<Objective> make_mtp(const MtpOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_MTP_H_
