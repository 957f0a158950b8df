// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/make_tree_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/spec.h"
#include "io/strict_json.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "speculate/tree_shapes/best_shape.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

constexpr const char* kReadTree = "read tree";

using RankPath = std::vector<int>;

class RankTreeHandler final : public StrictJsonHandler {
 public:
  explicit RankTreeHandler(std::string file) : StrictJsonHandler(kReadTree, std::move(file)) {}

  bool start_array(std::size_t) override {
    if (level_ == 2) return unexpected("an array");
    if (++level_ == 2) path_.clear();
    return true;
  }
  bool end_array() override {
    if (level_ == 0) return unexpected("the end of an array");
    if (level_-- == 1) return true;
    if (path_.empty()) fail("ranks in every node", "an empty one");
    if (static_cast<int>(paths_.size()) == kMaxDraftNodes) {
      fail(fmt::format("at most {} nodes", kMaxDraftNodes), "more");
    }
    if (!paths_.insert(path_).second) fail("each node once", fmt::format("{} twice", name(path_)));
    return true;
  }
  bool number_unsigned(std::uint64_t rank) override {
    if (level_ != 2 || rank >= kMaxDraftNodes ||
        path_.size() >= static_cast<std::size_t>(kMaxDraftNodes)) {
      return unexpected(fmt::to_string(rank));
    }
    path_.push_back(static_cast<int>(rank));
    return true;
  }

  // Checks and returns all nodes; each path comes after its prefix and the prefix's earlier
  // continuations.
  const std::set<RankPath>& checked() const {
    if (paths_.empty()) fail("at least one node", "none");
    for (const RankPath& path : paths_) {
      RankPath needed = path;
      if (needed.back() > 0) {
        --needed.back();
      } else {
        needed.pop_back();
      }
      if (!needed.empty() && !paths_.contains(needed)) {
        fail(fmt::format("{} beside {}", name(needed), name(path)), "none");
      }
    }
    return paths_;
  }

 protected:
  Expectation expected() const override {
    if (level_ == 0) return {description(), "a list of nodes"};
    if (level_ == 1) return {description(), "a list of ranks for every node"};
    return {description(), fmt::format("ranks from 0 to {}", kMaxDraftNodes - 1)};
  }

 private:
  static std::string name(const RankPath& path) {
    return fmt::format("[{}]", fmt::join(path, ", "));
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(kReadTree, description(), expected, got);
  }

  int level_ = 0;
  RankPath path_;
  std::set<RankPath> paths_;
};

Siblings siblings_named(std::string_view name) {
  if (name == "with") return Siblings::with_replacement;
  if (name == "top") return Siblings::top_ranks;
  return Siblings::without_replacement;
}

Siblings read_siblings(const Spec& spec) {
  return siblings_named(spec.choice("siblings", {"without", "with", "top"}).value_or("without"));
}

std::vector<int> static_tree(const Spec& spec, const std::string& text) {
  const std::optional<std::string> file = spec.text("file");
  if (spec.value().empty() && file && !file->empty()) return read_rank_tree(*file);
  std::span<const int> tree;
  if (!file && spec.value() == "eagle1") tree = eagle1_tree();
  if (!file && spec.value() == "medusa") tree = medusa_tree();
  if (tree.empty()) {
    throw UsageError(kReadTree, text, "static:eagle1, static:medusa or static:file=FILE",
                     spec.value().empty() ? "neither" : spec.value());
  }
  return {tree.begin(), tree.end()};
}

std::vector<int> tree_of_widths(const Spec& spec, const std::string& text) {
  const std::vector<int> widths = spec.integers(1, kMaxDraftNodes);
  if (widths.empty()) throw UsageError(kReadTree, text, "widths:W1,W2,...", "no widths");
  std::int64_t n_in_level = 1;
  std::int64_t n_nodes = 0;
  for (const int width : widths) {
    n_in_level *= width;
    n_nodes += n_in_level;
    if (n_nodes > kMaxDraftNodes) {
      throw UsageError(kReadTree, text, fmt::format("at most {} nodes", kMaxDraftNodes), "more");
    }
  }
  return widths_tree(widths);
}

// Planned for the measured kind of siblings, and uses it.
std::shared_ptr<const TreeShape> planned_shape(const Spec& spec, const std::string& text) {
  const std::optional<std::string> file = spec.text("profile");
  if (!file || file->empty()) {
    throw UsageError(kReadTree, text, "sequoia:profile=FILE, which 'outrider tune tree' writes",
                     "no profile");
  }
  const int budget = spec.integer("budget", 1, kMaxDraftNodes).value_or(0);
  const int depth = spec.integer("depth", 1, kMaxDraftNodes).value_or(0);
  const TreeProfile profile = read_tree_profile(*file);
  return std::make_shared<FixedShape>(plan_tree(profile, budget, depth).n_children,
                                      siblings_named(profile.siblings));
}

}  // namespace

std::vector<int> read_rank_tree(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  RankTreeHandler handler(file.string());
  handler.read({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()});
  // Places are ordered by level, and within a level by path.
  std::vector<RankPath> places(1);
  const std::set<RankPath>& paths = handler.checked();
  places.insert(places.end(), paths.begin(), paths.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const RankPath& a, const RankPath& b) { return a.size() < b.size(); });
  std::vector<int> n_children;
  n_children.reserve(places.size());
  for (const RankPath& place : places) {
    n_children.push_back(
        static_cast<int>(std::count_if(paths.begin(), paths.end(), [&place](const RankPath& path) {
          return path.size() == place.size() + 1 &&
                 std::equal(place.begin(), place.end(), path.begin());
        })));
  }
  return n_children;
}

std::shared_ptr<const TreeShape> make_tree_shape(const std::string& text) {
  if (text.empty()) return chain_shape(kDefaultDraftLength);
  const Spec spec = Spec::parse("tree", text);
  spec.require_name({"chain", "widths", "static", "dynamic", "best", "sequoia"});
  if (spec.name() == "widths") {
    spec.require_keys({"siblings"});
    return std::make_shared<FixedShape>(tree_of_widths(spec, text), read_siblings(spec));
  }
  if (spec.name() == "static") {
    spec.require_keys({"file", "siblings"});
    return std::make_shared<FixedShape>(static_tree(spec, text), read_siblings(spec));
  }
  spec.require_no_value();
  if (spec.name() == "sequoia") {
    spec.require_keys({"budget", "depth", "profile"});
    return planned_shape(spec, text);
  }
  if (spec.name() == "chain") {
    spec.require_keys({"length"});
    return chain_shape(spec.integer("length", 1, kMaxDraftNodes).value_or(kDefaultDraftLength));
  }
  if (spec.name() == "best") {
    spec.require_keys({"nodes", "depth"});
    BestShape::Limits limits;
    limits.nodes = spec.integer("nodes", 1, kMaxDraftNodes).value_or(limits.nodes);
    limits.depth = spec.integer("depth", 1, kMaxDraftNodes).value_or(limits.depth);
    return std::make_shared<BestShape>(limits);
  }
  spec.require_keys({"total", "depth", "topk"});
  DynamicShape::Limits limits;
  limits.total = spec.integer("total", 1, kMaxDraftNodes).value_or(limits.total);
  limits.depth = spec.integer("depth", 1, kMaxDraftNodes).value_or(limits.depth);
  limits.top_k = spec.integer("topk", 1, kMaxDraftNodes).value_or(limits.top_k);
  // Expanded nodes hold distributions, whether they are kept or not.
  if (1 + limits.top_k * (limits.depth - 1) > kMaxDraftNodes) {
    throw UsageError(kReadTree, text, fmt::format("topk * (depth - 1) below {}", kMaxDraftNodes),
                     fmt::format("{}", limits.top_k * (limits.depth - 1)));
  }
  return std::make_shared<DynamicShape>(limits);
}

}  // namespace outrider
