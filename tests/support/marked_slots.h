// SPDX-License-Identifier: Apache-2.0
// Cache slots marked with numbers, so that tests can tell which slot's keys and values are where.
// For caches in f32.
#ifndef OUTRIDER_TESTS_SUPPORT_MARKED_SLOTS_H_
#define OUTRIDER_TESTS_SUPPORT_MARKED_SLOTS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/attention/kv_layout.h"
#include "model/cache/kv_sequence.h"

namespace outrider::test {

// Fills a slot's keys and values, of every head in every layer, with a number.
inline void mark(const KvSequence& sequence, int slot, float number) {
  int n_layers = 0;
  for (const CacheGroup& group : sequence.cache()->groups()) {
    n_layers += static_cast<int>(group.layers.size());
  }
  for (int layer = 0; layer < n_layers; ++layer) {
    const KvShape& shape = sequence.shape(layer);
    const kernels::KvLayout layout{shape.kind, shape.head_dim};
    std::byte* page = sequence.layer(slot, layer);
    for (int head = 0; head < shape.n_heads; ++head) {
      for (int dim = 0; dim < shape.head_dim; ++dim) {
        const float key = number + 10000.0F * static_cast<float>(layer) +
                          0.25F * static_cast<float>(dim) + 0.03125F * static_cast<float>(head);
        const float value = -key;
        const int token = slot % kPageTokens;
        std::memcpy(page + shape.keys_at(head) + layout.key_at(token, dim), &key, sizeof key);
        std::memcpy(page + shape.values_at(head) + layout.value_at(token, dim), &value,
                    sizeof value);
      }
    }
  }
}

// The number of a slot in one layer; `page` is the layer's part of the slot's page. Fails if the
// slot's keys and values are not all the same number.
inline float marked(const KvShape& shape, const void* page, int slot, int layer) {
  const kernels::KvLayout layout{shape.kind, shape.head_dim};
  const auto* const begin = static_cast<const std::byte*>(page);
  const int token = slot % kPageTokens;
  float first = 0;
  for (int head = 0; head < shape.n_heads; ++head) {
    for (int dim = 0; dim < shape.head_dim; ++dim) {
      float key;
      float value;
      std::memcpy(&key, begin + shape.keys_at(head) + layout.key_at(token, dim), sizeof key);
      std::memcpy(&value, begin + shape.values_at(head) + layout.value_at(token, dim),
                  sizeof value);
      if (head == 0 && dim == 0) first = key;
      EXPECT_EQ(key, first + 0.25F * static_cast<float>(dim) + 0.03125F * static_cast<float>(head));
      EXPECT_EQ(value, -key);
    }
  }
  return first - 10000.0F * static_cast<float>(layer);
}

// The number of a kept or pending slot in one layer.
inline float number_at(const KvSequence& sequence, int slot, int layer) {
  return marked(sequence.shape(layer), sequence.layer(slot, layer), slot, layer);
}

// The slots that a pending node attends to, in order of position.
inline std::vector<int> slots_read(const KvSequence& sequence, int node) {
  std::vector<int> slots(static_cast<std::size_t>(sequence.n_kept() + sequence.depth(node) + 1));
  const auto n_contiguous = static_cast<std::size_t>(sequence.n_contiguous(node));
  for (std::size_t slot = 0; slot < n_contiguous; ++slot) slots[slot] = static_cast<int>(slot);
  sequence.scattered_slots(node, std::span(slots).subspan(n_contiguous));
  return slots;
}

// The part of every page that belongs to a layer; null if a page has been released.
inline std::vector<const void*> chunks(const KvSequence& sequence, int layer) {
  std::vector<const void*> pages(sequence.n_pages(layer));
  sequence.chunks(layer, pages);
  return pages;
}

// Adds pending nodes with these parents, marked with first, first + 1 and so on.
inline void add(KvSequence& sequence, const std::vector<int>& parents, float first) {
  sequence.ensure_slots(static_cast<int>(parents.size()));
  for (const int parent : parents) {
    sequence.append(parent);
    mark(sequence, sequence.n_kept() + sequence.n_pending() - 1, first++);
  }
}

// Adds n tokens and keeps them one by one.
inline void add_kept(KvSequence& sequence, int n, float first) {
  const int path[] = {0};
  for (int i = 0; i < n; ++i) {
    add(sequence, {-1}, first + static_cast<float>(i));
    sequence.keep(path);
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MARKED_SLOTS_H_
