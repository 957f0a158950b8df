// SPDX-License-Identifier: Apache-2.0
// Makes the shape of drafts from a tree spec.
#ifndef OUTRIDER_ENGINE_DRAFTING_MAKE_TREE_SHAPE_H_
#define OUTRIDER_ENGINE_DRAFTING_MAKE_TREE_SHAPE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {

// "chain:length=K", "widths:4,2,2", "static:eagle1", "static:medusa", "static:file=F",
// "dynamic:total=,depth=,topk=", "best:nodes=,depth=", "sequoia:profile=F,budget=,depth="; "widths"
// and "static" take "siblings=without|with|top". Empty is chain:length=5. Throws UsageError for
// invalid specs, and Error for a file that cannot be read or has invalid contents.
std::shared_ptr<const TreeShape> make_tree_shape(const std::string& spec);

// Reads a tree from JSON: a list of nodes, each a list of ranks that lead to it from the root, as
// in [[0], [1], [0, 0]], in any order. Every node's parent and better-ranked siblings must be
// listed, no node twice. Returns the numbers of children of its places (FixedShape).
std::vector<int> read_rank_tree(const std::filesystem::path& file);

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_MAKE_TREE_SHAPE_H_
