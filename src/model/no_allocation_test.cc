// Once warm, decoding allocates nothing: not the pass, not the cache, not keep().
// This file replaces the allocation functions of the whole test program by counting ones; under a
// sanitizer, which has its own, it is left out.
#if defined(__has_feature)
#define OUTRIDER_HAS_FEATURE(name) __has_feature(name)
#else
#define OUTRIDER_HAS_FEATURE(name) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !OUTRIDER_HAS_FEATURE(address_sanitizer) && !OUTRIDER_HAS_FEATURE(thread_sanitizer)

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/load_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"

namespace {
std::atomic<long> n_allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  ++n_allocations;
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// GCC 12 inlines one half of a replaced pair and then finds that the halves do not match.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

void* operator new(std::size_t size) { return counted(size > 0 ? size : 1, 16); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size > 0 ? size : 1, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace outrider {
namespace {

TEST(LlamaModel, AllocatesNothingOnceWarm) {
  const testing::TemporaryDirectory directory;
  testing::write_hugging_face(testing::make_tiny_model({}), directory.path());
  for (const auto kind : {kernels::WeightKind::f32, kernels::WeightKind::int8}) {
    LoadOptions options;
    options.weights = kind;
    options.n_threads = 1;
    const auto model = load_model(directory.path(), options);
    ForwardOutput output;
    const TokenId tokens[] = {5, 6, 7, 8};
    const int parents[] = {-1, -1, 1, 2};
    const int path[] = {1, 2};
    const auto sequence = model->open({});
    const TokenBlock block{sequence.get(), tokens, parents};
    const auto rounds = [&] {
      for (int i = 0; i < 40; ++i) {
        model->forward({&block, 1}, {}, output);
        sequence->keep(path);
      }
    };
    rounds();
    sequence->truncate(3);
    const long before = n_allocations;
    rounds();
    EXPECT_EQ(n_allocations, before);
    EXPECT_EQ(sequence->n_kept(), 83);
  }
  EXPECT_GT(n_allocations, 0);
}

}  // namespace
}  // namespace outrider

#endif
