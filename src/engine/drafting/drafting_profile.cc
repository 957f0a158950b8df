// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/drafting_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "outrider-drafting-profile";
constexpr int kVersion = 2;

// A full profile has some 10,000 numbers of at most 25 characters; specs may be long.
constexpr std::size_t kLongest_bytes = 4U << 20;
// A profile nests six deep. Values are destroyed recursively, so a made-up file could exhaust the
// stack.
constexpr int kDeepest = 16;

// An error without the file's name.
struct Mistake {
  std::string expected;
  std::string got;
};

[[noreturn]] void fail(std::string expected, std::string got) {
  throw Mistake{std::move(expected), std::move(got)};
}

// What to show instead of a number: a list may be long, or nested.
std::string shown(const Json& value) {
  return value.is_primitive() ? value.dump() : value.type_name();
}

bool has_drafter(const DraftingProfile& profile, const std::string& spec) {
  return std::any_of(profile.drafters.begin(), profile.drafters.end(),
                     [&spec](const auto& one) { return one.first == spec; });
}

PassTimes slowed(const PassTimes& times, double by) {
  std::vector<PassTimes::Measured> points = times.points();
  for (PassTimes::Measured& point : points) point = {point.rows, by * point.seconds};
  return PassTimes(std::move(points));
}

Json to_json(const PassTimes& times, double scale) {
  Json rows = Json::array();
  for (const PassTimes::Measured& point : times.points()) {
    rows.push_back({point.rows, point.seconds / scale});
  }
  return rows;
}

Json to_json(const DraftPast& past) {
  Json depths = Json::array();
  for (const DraftPast::Counts& counts : past.counts()) {
    depths.push_back({counts.rounds, counts.nodes, counts.reached, counts.accepted});
  }
  return depths;
}

Json to_json(const KnownOfDrafter::Drafts& drafts) {
  Json classes = Json::array();
  for (const TrustCurve::Counts& counts : drafts.trust.counts()) {
    classes.push_back({counts.judged, counts.stood});
  }
  return {{"depths", to_json(drafts.past)},
          {"recent", to_json(drafts.recent_past)},
          {"trust", std::move(classes)}};
}

const Json& member(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) fail(fmt::format("the key '{}'", key), "none");
  return object[key];
}

// A count or a time.
double number(const Json& value) {
  if (!value.is_number()) fail("numbers", shown(value));
  const auto number = value.get<double>();
  if (!(number >= 0) || !std::isfinite(number)) fail("numbers of 0 or more", shown(value));
  return number;
}

const Json& list(const Json& value, std::size_t n_entries) {
  if (!value.is_array() || value.size() != n_entries) {
    fail(fmt::format("a list of {}", n_entries), shown(value));
  }
  return value;
}

PassTimes read_times(const Json& value) {
  if (!value.is_array()) fail("a list of passes", shown(value));
  std::vector<PassTimes::Measured> points;
  points.reserve(value.size());
  for (const Json& one : value) {
    list(one, 2);
    const double rows = number(one[0]);
    const double before = points.empty() ? 0 : points.back().rows;
    if (rows <= before || rows > kMaxDraftNodes * 1024.0 || number(one[1]) <= 0) {
      fail("passes of more and more rows, each with its seconds", shown(one));
    }
    points.push_back({static_cast<int>(rows), number(one[1])});
  }
  return PassTimes(std::move(points));
}

DraftPast::AllCounts read_depths(const Json& value) {
  DraftPast::AllCounts depths;
  const Json& listed = list(value, depths.size());
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const Json& one = list(listed[i], 4);
    depths[i] = {number(one[0]), number(one[1]), number(one[2]), number(one[3])};
    if (depths[i].accepted > depths[i].reached || depths[i].reached > depths[i].rounds) {
      fail("no more accepted than was reached, and no more of that than rounds", shown(one));
    }
  }
  return depths;
}

KnownOfDrafter::Drafts read_drafts(const Json& value) {
  KnownOfDrafter::Drafts drafts;
  drafts.past.set_counts(read_depths(member(value, "depths")));
  // Files from before recent_only drafts lack it.
  if (value.contains("recent")) drafts.recent_past.set_counts(read_depths(value["recent"]));
  TrustCurve::AllCounts classes;
  const Json& trust = list(member(value, "trust"), classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const Json& one = list(trust[i], 2);
    classes[i] = {number(one[0]), number(one[1])};
    if (classes[i].stood > classes[i].judged) fail("no more that stood than judged", shown(one));
  }
  drafts.trust.set_counts(classes);
  return drafts;
}

Json parse(std::string_view text) {
  if (text.size() > kLongest_bytes) {
    fail(fmt::format("at most {} bytes", kLongest_bytes), fmt::format("{}", text.size()));
  }
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) fail(fmt::format("values in at most {} others", kDeepest), "more");
    return true;
  };
  Json whole = Json::parse(text, check_depth, /*allow_exceptions=*/false);
  if (whole.is_discarded()) fail("JSON", fmt::format("{} bytes that are none", text.size()));
  return whole;
}

DraftingProfile read(std::string_view text) {
  const Json whole = parse(text);
  if (member(whole, "format") != kFormat) fail(kFormat, shown(member(whole, "format")));
  if (member(whole, "version") != kVersion) {
    fail(fmt::format("version {}", kVersion), shown(member(whole, "version")));
  }
  DraftingProfile profile;
  profile.passes = read_times(member(whole, "passes"));
  const Json& drafters = member(whole, "drafters");
  if (!drafters.is_array()) fail("a list of drafters", shown(drafters));
  if (drafters.size() > kMaxProfiledDrafters) {
    fail(fmt::format("at most {} drafters", kMaxProfiledDrafters),
         fmt::format("{}", drafters.size()));
  }
  for (const Json& one : drafters) {
    const Json& spec = member(one, "drafter");
    if (!spec.is_string()) fail("a drafter's spec", shown(spec));
    if (has_drafter(profile, spec.get_ref<const std::string&>())) {
      fail("each drafter once", shown(spec));
    }
    KnownOfDrafter known;
    known.levels = read_times(member(one, "levels"));
    known.seconds_a_token = number(member(one, "seconds_a_token"));
    known.greedy = read_drafts(member(one, "greedy"));
    known.drawn = read_drafts(member(one, "drawn"));
    profile.drafters.emplace_back(spec.get<std::string>(), std::move(known));
  }
  return profile;
}

}  // namespace

DraftingProfile merge_profiles(DraftingProfile run, DraftingProfile before) {
  if (run.passes.empty()) run.passes = before.passes;
  // Both at scale 1, the scale in files.
  const double now = run.passes.seconds(1) / run.passes.scale();
  const double then = before.passes.seconds(1) / before.passes.scale();
  const double slower = now > 0 && then > 0 ? now / then : 1;
  for (auto& [spec, known] : before.drafters) {
    if (has_drafter(run, spec)) continue;
    known.levels = slowed(known.levels, slower);
    known.seconds_a_token *= slower;
    run.drafters.emplace_back(std::move(spec), std::move(known));
  }
  if (run.drafters.size() > kMaxProfiledDrafters) {
    run.drafters.erase(run.drafters.begin() + kMaxProfiledDrafters, run.drafters.end());
  }
  return run;
}

std::string to_text(const DraftingProfile& profile) {
  Json drafters = Json::array();
  for (const auto& [spec, known] : profile.drafters) {
    drafters.push_back({{"drafter", spec},
                        {"levels", to_json(known.levels, 1)},
                        {"seconds_a_token", known.seconds_a_token},
                        {"greedy", to_json(known.greedy)},
                        {"drawn", to_json(known.drawn)}});
  }
  const Json whole = {{"format", kFormat},
                      {"version", kVersion},
                      // Drafters' times are at this scale as well.
                      {"passes", to_json(profile.passes, profile.passes.scale())},
                      {"drafters", std::move(drafters)}};
  return whole.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

DraftingProfile read_drafting_profile(std::string_view text, std::string_view name) {
  try {
    return read(text);
  } catch (const Mistake& mistake) {
    throw Error("read drafting profile", name, mistake.expected, mistake.got);
  }
}

}  // namespace outrider
