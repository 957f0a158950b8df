// SPDX-License-Identifier: Apache-2.0
#include "apps/commands/tree_descriptions.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace outrider::cli {
namespace {

constexpr const char* kNoFile = "nothing";

std::string command_with_tree(std::string_view tree) {
  return fmt::format(
      "outrider generate --model LARGE --draft SMALL --prompt \"Once upon a time\" \\\n"
      "    --tree {}",
      tree);
}

KeyDescription siblings_key(const char* example) {
  return {.name = "siblings",
          .value = "without|with|top",
          .default_value = "without",
          .meaning = "children are drawn without or with replacement, or are the likeliest tokens",
          .example = example};
}

SpecDescription auto_tree() {
  return {.name = "auto",
          .form = "auto",
          .summary = "as deep as pays here",
          .needs = kNoFile,
          .about =
              "Drafts are as deep as pays, by what passes cost on this machine and by how many "
              "drafted tokens were accepted lately; none where no draft pays. At a "
              "temperature above 0 the verification is coupled unless --verify names another.",
          .source = "docs/drafters.md, How long a draft is",
          .pays = "Nearly always. It is the default of generate and chat.",
          .example = command_with_tree("auto")};
}

SpecDescription own_tree() {
  return {.name = "own",
          .form = "own",
          .summary = "the drafter's own shape, always",
          .needs = kNoFile,
          .about =
              "The shape that the drafter was published with, or chain:length=5 for a model; "
              "outrider drafters NAME says which. Drafts do not depend on the clock.",
          .source = "the source of each drafter",
          .pays = "For measurements that must repeat. It is the default elsewhere.",
          .example = command_with_tree("own")};
}

SpecDescription chain_tree() {
  return {.name = "chain",
          .form = "chain:length=K",
          .summary = "one path of K tokens",
          .needs = kNoFile,
          .about =
              "Each token is drafted behind the one before it. A token counts only if all "
              "before it were accepted.",
          .keys = {{.name = "length",
                    .value = "K",
                    .default_value = "5",
                    .meaning = "tokens, from 1 to 255",
                    .example = "chain:length=3"}},
          .source =
              "Leviathan et al., Fast Inference from Transformers via Speculative Decoding, "
              "arXiv:2211.17192",
          .pays =
              "Where a pass over several rows costs clearly more than a pass over one, and "
              "where the drafter is often right.",
          .example = command_with_tree("chain:length=3")};
}

SpecDescription widths_tree() {
  return {.name = "widths",
          .form = "widths:W1,W2,...",
          .summary = "so many children in each level",
          .needs = kNoFile,
          .about = "The root has W1 children, each of these W2, and so on; 255 nodes at most.",
          .keys = {siblings_key("widths:2,2,siblings=top")},
          .source = "Miao et al., SpecInfer, arXiv:2305.09781, section 3",
          .pays = "Where rows of a pass are cheap and the first token is the uncertain one.",
          .example = command_with_tree("widths:4,2,1")};
}

SpecDescription static_tree() {
  return {.name = "static",
          .form = "static:NAME",
          .summary = "a fixed tree, given by ranks",
          .needs = "nothing or a file",
          .about =
              "static:eagle1 is the tree of EAGLE (25 nodes, depth 5), static:medusa that of "
              "Medusa for Vicuna-7B (63 nodes, depth 4), static:file=FILE your own.",
          .keys = {{.name = "file",
                    .value = "FILE",
                    .default_value = "none",
                    .meaning = "a JSON list of nodes, each the list of ranks that leads to it, as "
                               "[[0],[1],[0,0]]",
                    .example = "static:file=tree.json"},
                   siblings_key("static:eagle1,siblings=top")},
          .source = "Li et al., EAGLE, arXiv:2401.15077; Cai et al., Medusa, arXiv:2401.10774",
          .pays = "With the drafters that these trees were published for.",
          .example = command_with_tree("static:eagle1")};
}

SpecDescription dynamic_tree() {
  return {.name = "dynamic",
          .form = "dynamic",
          .summary = "grown where the drafter is confident",
          .needs = kNoFile,
          .about =
              "Each level expands the likeliest paths; in the end the likeliest nodes of all "
              "stay. Nodes are the likeliest tokens at any temperature.",
          .keys = {{.name = "total",
                    .value = "N",
                    .default_value = "60",
                    .meaning = "nodes that stay, up to 255",
                    .example = "dynamic:total=25"},
                   {.name = "depth",
                    .value = "D",
                    .default_value = "7",
                    .meaning = "levels",
                    .example = "dynamic:depth=5"},
                   {.name = "topk",
                    .value = "K",
                    .default_value = "10",
                    .meaning = "paths that a level expands; K (D - 1) is below 255",
                    .example = "dynamic:topk=6"}},
          .source = "Li et al., EAGLE-2, arXiv:2406.16858",
          .pays = "At temperature 0, where rows of a pass are cheap.",
          .example = command_with_tree("dynamic:total=25,depth=7,topk=10")};
}

SpecDescription best_tree() {
  return {.name = "best",
          .form = "best",
          .summary = "the likeliest paths of all",
          .needs = kNoFile,
          .about =
              "Of all paths that are short enough, those that the drafter finds likeliest. "
              "Nodes are the likeliest tokens at any temperature.",
          .keys = {{.name = "nodes",
                    .value = "N",
                    .default_value = "60",
                    .meaning = "nodes, up to 255",
                    .example = "best:nodes=25"},
                   {.name = "depth",
                    .value = "D",
                    .default_value = "16",
                    .meaning = "tokens of a path at most",
                    .example = "best:depth=8"}},
          .source = "DDTree, arXiv:2604.12989",
          .pays =
              "At temperature 0 with dflash: and dspark:, where a tree takes the drafter's pass "
              "of a chain.",
          .example = command_with_tree("best:nodes=25,depth=8")};
}

SpecDescription sequoia_tree() {
  return {.name = "sequoia",
          .form = "sequoia:profile=FILE",
          .summary = "the fixed tree that pays most here",
          .needs = "a profile",
          .about =
              "The tree that takes the least time a token, planned from the acceptance by rank "
              "and the costs of passes that outrider tune tree measured.",
          .keys = {{.name = "profile",
                    .value = "FILE",
                    .default_value = "",
                    .meaning = "what outrider tune tree wrote",
                    .example = "sequoia:profile=tree.json"},
                   {.name = "budget",
                    .value = "N",
                    .default_value = "the profile's",
                    .meaning = "nodes at most, up to 255",
                    .example = "sequoia:profile=tree.json,budget=25"},
                   {.name = "depth",
                    .value = "D",
                    .default_value = "any",
                    .meaning = "levels at most",
                    .example = "sequoia:profile=tree.json,depth=6"}},
          .source = "Chen et al., Sequoia, arXiv:2402.12374",
          .pays = "Above temperature 0, with a profile of this machine, pair and temperature.",
          .example = command_with_tree("sequoia:profile=tree.json")};
}

}  // namespace

std::vector<SpecDescription> known_trees() {
  return {auto_tree(),   own_tree(),     chain_tree(), widths_tree(),
          static_tree(), dynamic_tree(), best_tree(),  sequoia_tree()};
}

}  // namespace outrider::cli
