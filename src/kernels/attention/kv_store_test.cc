// SPDX-License-Identifier: Apache-2.0
// Stores of one token's keys and values into a block of the cache. Compares every table and every
// type with kv_layout.h, implemented again here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/float16.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/table.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/near.h"

namespace outrider::kernels {
namespace {

constexpr std::byte kUnwritten{0x5a};
constexpr int kHeadDims[] = {1, 3, 4, 16, 20, 64, 80, 256};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A head of ordinary numbers, one of zeros, one too small to differ from zeros, and heads with
// every special value.
std::vector<std::vector<float>> heads(int dim) {
  const auto n = static_cast<std::size_t>(dim);
  std::vector<std::vector<float>> heads = {test::awkward_floats(n, 3), std::vector<float>(n, 0.0F),
                                           std::vector<float>(n, -1e-44F)};
  std::vector<float> halves(n);
  for (std::size_t i = 0; i < n; ++i) halves[i] = static_cast<float>(i) - 7.5F;
  halves[n / 2] = 127.0F;
  heads.push_back(halves);
  for (const float odd : {kNan, -kNan, kInfinity, -kInfinity, 1.0F + 0x1p-8F, 1.0F + 3 * 0x1p-8F,
                          std::numeric_limits<float>::max(), 1e-45F, -0.0F,
                          std::numeric_limits<float>::signaling_NaN()}) {
    heads.push_back(halves);
    heads.back()[n - 1] = odd;
  }
  return heads;
}

// A stored head: its elements' bytes, and for int8 the scale.
struct Stored {
  std::vector<std::vector<std::byte>> elements;
  float scale = 0;

  template <class Element>
  void add(Element element) {
    elements.emplace_back(sizeof element);
    std::memcpy(elements.back().data(), &element, sizeof element);
  }

  Stored(KvKind kind, const std::vector<float>& x) {
    float largest = 0;
    bool finite = true;
    for (const float value : x) {
      largest = std::max(largest, std::fabs(value));
      finite = finite && std::isfinite(value);
    }
    const float inverse = 127.0F / largest;
    const bool zero = !finite || !std::isfinite(inverse);
    scale = finite ? (zero ? 0.0F : largest / 127.0F) : kNan;
    for (const float value : x) {
      if (kind == KvKind::f32) add(value);
      if (kind == KvKind::bf16) add(to_bf16(value).bits);
      if (kind == KvKind::int8) {
        add(zero ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(value * inverse)));
      }
    }
  }
};

// The block with only that token.
std::vector<std::byte> block_with(const KvLayout& layout, const Stored& stored, bool is_key,
                                  int token) {
  std::vector<std::byte> block(layout.block_bytes(), kUnwritten);
  const std::size_t size = stored.elements[0].size();
  const std::size_t together = 4 / size;
  const std::size_t n_columns =
      is_key ? 64 : (static_cast<std::size_t>(layout.head_dim) + 15) / 16 * 16;
  constexpr std::size_t kPlaces[] = {0, 2, 1, 3};
  for (std::size_t dim = 0; dim < stored.elements.size(); ++dim) {
    const std::size_t term = is_key ? dim : static_cast<std::size_t>(token);
    const std::size_t column = is_key ? static_cast<std::size_t>(token) : dim;
    const std::size_t within = size == 1 ? kPlaces[term % 4] : term % together;
    const std::size_t at = (term / together * n_columns + column) * 4 + within * size;
    std::copy(stored.elements[dim].begin(), stored.elements[dim].end(),
              block.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (size == 1) {
    std::memcpy(&block[block.size() - 64 * 4 + static_cast<std::size_t>(token) * 4], &stored.scale,
                sizeof stored.scale);
  }
  return block;
}

TEST(KvStore, EveryTableWritesATokensPlaceAndNothingElse) {
  for (const KvKind kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    for (const int dim : kHeadDims) {
      const KvLayout layout{kind, dim};
      for (const std::vector<float>& x : heads(dim)) {
        const Stored stored(kind, x);
        for (const int token : {0, 1, 2, 3, 5, 17, 62, 63}) {
          for (const bool is_key : {true, false}) {
            const std::vector<std::byte> expected = block_with(layout, stored, is_key, token);
            for (const auto& [name, table] : test::runnable_tables()) {
              std::vector<std::byte> block(layout.block_bytes(), kUnwritten);
              const auto* const store = is_key ? table->store_key : table->store_value;
              store[static_cast<int>(kind)](x.data(), dim, block.data(), token);
              if (kind == KvKind::int8 && std::isnan(stored.scale)) {
                float scale = 0;
                std::memcpy(&scale, &block[layout.scale_at(token)], sizeof scale);
                ASSERT_TRUE(std::isnan(scale)) << name;
                std::memcpy(&block[layout.scale_at(token)], &expected[layout.scale_at(token)],
                            sizeof scale);
              }
              ASSERT_TRUE(block == expected)
                  << name << " kind " << static_cast<int>(kind) << " dim " << dim << " token "
                  << token << (is_key ? " key" : " value");
            }
          }
        }
      }
    }
  }
}

// Moving between blocks copies exactly what was stored.
TEST(KvStore, CopiesAreWhatWouldHaveBeenStoredThere) {
  for (const KvKind kind : {KvKind::f32, KvKind::bf16, KvKind::int8}) {
    for (const int dim : kHeadDims) {
      const KvLayout layout{kind, dim};
      const Stored stored(kind, heads(dim)[0]);
      for (const auto& [from, to] : {std::pair{0, 0}, {5, 2}, {6, 63}, {63, 8}}) {
        std::vector<std::byte> block(layout.block_bytes(), kUnwritten);
        layout.copy_key(block_with(layout, stored, true, from).data(), from, block.data(), to);
        const std::vector<std::byte> key = block_with(layout, stored, true, to);
        // A cell is copied whole; the padding of its dims is undefined.
        for (int d = 0; d < dim; ++d) {
          for (std::size_t i = 0; i < layout.element_bytes(); ++i) {
            ASSERT_EQ(block[layout.key_at(to, d) + i], key[layout.key_at(to, d) + i]);
          }
        }
        ASSERT_EQ(std::count(block.begin(), block.end(), kUnwritten),
                  std::count(key.begin(), key.end(), kUnwritten));
        std::fill(block.begin(), block.end(), kUnwritten);
        layout.copy_value(block_with(layout, stored, false, from).data(), from, block.data(), to);
        ASSERT_TRUE(block == block_with(layout, stored, false, to));
      }
    }
  }
}

}  // namespace
}  // namespace outrider::kernels
