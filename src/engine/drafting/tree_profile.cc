// SPDX-License-Identifier: Apache-2.0
// Profiles of drafters as files, and the trees planned from them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "io/strict_json.h"
#include "outrider/error.h"
#include "outrider/tune.h"
#include "speculate/tree_shapes/sequoia_tree.h"
#include "speculate/tree_shapes/tree_shape.h"

namespace outrider {
namespace {

constexpr const char* kRead = "read tree profile";
constexpr const char* kFormat = "outrider-tree-profile";
constexpr int kVersion = 1;

// Rounding tolerance for sums of counted shares.
constexpr double kMaxShares = 1 + 1e-9;

class ProfileReader final : public StrictJsonHandler {
 public:
  explicit ProfileReader(const std::string& file) : StrictJsonHandler(kRead, file) {}

  TreeProfile finish() {
    for (const std::string_view key : kKeys) {
      if (!seen(key)) fail(fmt::format("the key '{}'", key), "none");
    }
    double sum = 0;
    for (const double share : profile_.accept_by_rank) sum += share;
    if (profile_.accept_by_rank.empty()) fail("a share for at least one rank", "none");
    if (sum > kMaxShares) fail("shares by rank with a sum of at most 1", fmt::to_string(sum));
    if (profile_.passes.empty() || profile_.passes.front().rows != 1) {
      fail("a pass over 1 row first", "none");
    }
    return std::move(profile_);
  }

  bool start_object(std::size_t) override {
    if (level_ == 0 || (level_ == 2 && key_ == "passes")) {
      if (level_ == 2) pass_ = {.rows = 0, .seconds = 0};
      ++level_;
      return true;
    }
    return unexpected("an object");
  }
  bool end_object() override {
    if (level_-- == 1) return true;
    const int before = profile_.passes.empty() ? 0 : profile_.passes.back().rows;
    if (pass_.rows <= before || pass_.seconds <= 0) {
      fail("passes of more and more rows, each with its seconds",
           fmt::format("{} rows, {} seconds behind {} rows", pass_.rows, pass_.seconds, before));
    }
    profile_.passes.push_back(pass_);
    return true;
  }
  bool start_array(std::size_t) override {
    if (level_ != 1 || (key_ != "accept_by_rank" && key_ != "passes")) {
      return unexpected("an array");
    }
    ++level_;
    return true;
  }
  bool end_array() override {
    --level_;
    return true;
  }
  bool key(std::string& key) override {
    if (level_ == 3) {
      if (key != "rows" && key != "seconds") fail("rows and seconds of a pass", key);
      pass_key_ = key;
      return true;
    }
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      fail(fmt::format("the keys {} alone", fmt::join(kKeys, ", ")), key);
    }
    if (seen(key)) fail("each key once", fmt::format("'{}' twice", key));
    key_ = key;
    seen_.push_back(key);
    return true;
  }
  bool string(std::string& value) override {
    if (level_ != 1) return unexpected(fmt::format("'{}'", value));
    if (key_ == "format" && value == kFormat) return true;
    if (key_ == "target") return take(profile_.target, value);
    if (key_ == "drafter") return take(profile_.drafter, value);
    if (key_ == "siblings" && (value == "without" || value == "with" || value == "top")) {
      return take(profile_.siblings, value);
    }
    return unexpected(fmt::format("'{}'", value));
  }
  bool number_integer(std::int64_t value) override { return unexpected(fmt::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override {
    if (level_ == 1 && key_ == "version" && value == kVersion) return true;
    if (level_ == 1 && key_ == "n_nodes" && value < (1ULL << 62)) {
      profile_.n_nodes = static_cast<std::int64_t>(value);
      return true;
    }
    if (level_ == 3 && pass_key_ == "rows" && value <= kMaxDraftNodes + 1) {
      pass_.rows = static_cast<int>(value);
      return true;
    }
    return number(static_cast<double>(value), fmt::to_string(value));
  }
  bool number_float(double value, const std::string& text) override { return number(value, text); }

 protected:
  Expectation expected() const override {
    if (level_ == 0) return {description(), "an object"};
    if (key_ == "format") return {description(), fmt::format("'{}'", kFormat)};
    if (key_ == "version") return {description(), fmt::format("version {}", kVersion)};
    if (key_ == "siblings") return {description(), "siblings without, with or top"};
    if (key_ == "accept_by_rank")
      return {description(), "a list of shares from 0 to 1, 255 at most"};
    if (key_ == "passes")
      return {description(), "a list of {\"rows\": N, \"seconds\": S}, N to 256"};
    return {description(), fmt::format("a value of '{}' that means something", key_)};
  }

 private:
  static constexpr std::array<std::string_view, 11> kKeys = {
      "format",         "version", "target",        "drafter",       "temperature", "siblings",
      "accept_by_rank", "n_nodes", "draft_seconds", "level_seconds", "passes"};

  bool seen(std::string_view key) const {
    return std::find(seen_.begin(), seen_.end(), key) != seen_.end();
  }
  static bool take(std::string& place, std::string& value) {
    place = std::move(value);
    return true;
  }
  bool number(double value, const std::string& text) {
    if (!std::isfinite(value) || value < 0) return unexpected(text);
    if (level_ == 1 && key_ == "temperature") {
      profile_.temperature = value;
    } else if (level_ == 1 && key_ == "draft_seconds") {
      profile_.draft_seconds = value;
    } else if (level_ == 1 && key_ == "level_seconds") {
      profile_.level_seconds = value;
    } else if (level_ == 2 && key_ == "accept_by_rank" && value <= 1 &&
               profile_.accept_by_rank.size() < static_cast<std::size_t>(kMaxDraftNodes)) {
      profile_.accept_by_rank.push_back(value);
    } else if (level_ == 3 && pass_key_ == "seconds") {
      pass_.seconds = value;
    } else {
      return unexpected(text);
    }
    return true;
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(kRead, description(), expected, got);
  }

  TreeProfile profile_;
  int level_ = 0;  // 1: in the object, 2: in a list of it, 3: in a pass
  std::string key_;
  std::string pass_key_;
  TreeProfile::Pass pass_;
  std::vector<std::string> seen_;
};

// Seconds of a target pass over the root and n drafted nodes, for n from 0 to max_nodes.
std::vector<double> target_pass_seconds(const TreeProfile& profile, int max_nodes) {
  std::vector<double> seconds;
  std::size_t next = 0;  // the first measured pass with at least that many rows
  for (int rows = 1; rows <= max_nodes + 1; ++rows) {
    while (profile.passes[next].rows < rows) ++next;
    const TreeProfile::Pass& above = profile.passes[next];
    if (above.rows == rows) {
      seconds.push_back(above.seconds);
      continue;
    }
    const TreeProfile::Pass& below = profile.passes[next - 1];
    seconds.push_back(below.seconds + (above.seconds - below.seconds) * (rows - below.rows) /
                                          (above.rows - below.rows));
  }
  return seconds;
}

}  // namespace

void write_tree_profile(const TreeProfile& profile, const std::filesystem::path& file) {
  nlohmann::ordered_json object;
  object["format"] = kFormat;
  object["version"] = kVersion;
  object["target"] = profile.target;
  object["drafter"] = profile.drafter;
  object["temperature"] = profile.temperature;
  object["siblings"] = profile.siblings;
  object["accept_by_rank"] = profile.accept_by_rank;
  object["n_nodes"] = profile.n_nodes;
  object["draft_seconds"] = profile.draft_seconds;
  object["level_seconds"] = profile.level_seconds;
  object["passes"] = nlohmann::ordered_json::array();
  for (const TreeProfile::Pass& pass : profile.passes) {
    object["passes"].push_back({{"rows", pass.rows}, {"seconds", pass.seconds}});
  }
  write_file_atomically(
      file, object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

TreeProfile read_tree_profile(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  ProfileReader reader(file.string());
  reader.read({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()});
  return reader.finish();
}

PlannedDraft plan_tree(const TreeProfile& profile, int budget, int depth) {
  if (profile.passes.empty() || profile.passes.front().rows != 1 ||
      profile.accept_by_rank.empty()) {
    throw UsageError("plan tree", "profile", "shares by rank, and a pass over one row first",
                     "none");
  }
  if (depth < 0) throw UsageError("plan tree", "depth", "0 or more", fmt::to_string(depth));
  const int max_nodes = profile.passes.back().rows - 1;
  if (budget < 0 || budget > max_nodes) {
    throw UsageError("plan tree", "budget",
                     fmt::format("at most {} nodes, up to which passes were measured", max_nodes),
                     fmt::to_string(budget));
  }
  if (budget == 0) budget = max_nodes;
  if (depth == 0) depth = budget;
  std::vector<double> seconds = target_pass_seconds(profile, budget);
  const double plain = seconds.front();
  for (std::size_t n = 1; n < seconds.size(); ++n) seconds[n] += profile.draft_seconds;
  PlannedTree tree =
      plan_sequoia_tree(profile.accept_by_rank, depth,
                        {.draft_level = profile.level_seconds, .target_pass = seconds});

  PlannedDraft plan{.n_children = std::move(tree.n_children),
                    .level_sizes = {},
                    .n_nodes = 0,
                    .tau = tree.tau,
                    .seconds_per_token = tree.cost_per_token,
                    .plain_seconds_per_token = plain};
  for (int level_size = 1, place = 0; level_size > 0;) {
    int next_size = 0;
    for (int i = 0; i < level_size; ++i, ++place) {
      const auto at = static_cast<std::size_t>(place);
      if (at < plan.n_children.size()) next_size += plan.n_children[at];
    }
    if (next_size > 0) plan.level_sizes.push_back(next_size);
    plan.n_nodes += next_size;
    level_size = next_size;
  }
  return plan;
}

}  // namespace outrider
