// SPDX-License-Identifier: Apache-2.0
// A draft that is a chain, for tests of code that uses only counts and depths.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_CHAIN_TREE_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_CHAIN_TREE_H_

#include "speculate/draft_tree.h"

namespace outrider::test {

// `length` drafted tokens, without distributions.
inline DraftTree chain_tree(int length) {
  DraftTree tree;
  tree.reset(0, 1);
  for (int i = 0; i < length; ++i) tree.add_child(i, 1, kPointMass);
  return tree;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_CHAIN_TREE_H_
