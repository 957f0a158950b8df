// SPDX-License-Identifier: Apache-2.0
#include "train/output/checkpoint.h"

#include <exception>

#include "base/files/atomic_file.h"
#include "outrider/error.h"
#include "train/training_device.h"

namespace outrider::train {

void save_checkpoint(const std::filesystem::path& file, const torch::nn::Module& trained,
                     const torch::optim::Optimizer& optimizer, std::int64_t n_steps_done) {
  torch::serialize::OutputArchive parameters;
  trained.save(parameters);
  torch::serialize::OutputArchive optimizer_state;
  optimizer.save(optimizer_state);
  torch::serialize::OutputArchive archive;
  archive.write("parameters", parameters);
  archive.write("optimizer", optimizer_state);
  archive.write("n_steps_done", c10::IValue(n_steps_done));
  AtomicFile out(file);
  // libtorch's writer finishes its archive in a destructor, through which an exception would end
  // the process. So an error is stored here, and further writes are skipped.
  std::exception_ptr failure;
  archive.save_to([&](const void* bytes, std::size_t n_bytes) {
    try {
      if (!failure) out.write({static_cast<const std::byte*>(bytes), n_bytes});
    } catch (...) {
      failure = std::current_exception();
    }
    return n_bytes;
  });
  if (failure) std::rethrow_exception(failure);
  out.commit();
}

std::int64_t load_checkpoint(const std::filesystem::path& file, torch::nn::Module& trained,
                             torch::optim::Optimizer& optimizer) {
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(file.string(), training_device());
    torch::serialize::InputArchive parameters;
    archive.read("parameters", parameters);
    torch::serialize::InputArchive optimizer_state;
    archive.read("optimizer", optimizer_state);
    c10::IValue n_steps_done;
    archive.read("n_steps_done", n_steps_done);
    trained.load(parameters);
    optimizer.load(optimizer_state);
    return n_steps_done.toInt();
  } catch (const c10::Error&) {
    throw Error("load checkpoint", file.string(), "a checkpoint of this run", "something else");
  }
}

}  // namespace outrider::train
