// SPDX-License-Identifier: Apache-2.0
// Rounds as an observer and a trace see them: slices nest, counts equal those of the results, and
// observing changes no text.
#include "outrider/round_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/cache/cache_group.h"
#include "outrider/batch.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Slice {
  std::string name;
  std::int64_t begin = 0;  // ns
  std::int64_t end = 0;
  json args = json::object();
};
using Track = std::pair<int, int>;  // process and thread ids

std::int64_t ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

// The slices of each track, in the order in which they end in the file.
std::map<Track, std::vector<Slice>> slices_of(const json& events) {
  std::map<Track, std::vector<Slice>> slices;
  std::map<Track, std::vector<Slice>> open;
  for (const json& event : events) {
    const std::string kind = event["ph"];
    if (kind == "M" || kind == "i") continue;
    const Track track = {event["pid"].get<int>(), event["tid"].get<int>()};
    const std::int64_t begin = ns(event["ts"]);
    if (kind == "X") {
      slices[track].push_back(
          {event["name"], begin, begin + ns(event["dur"]), event.value("args", json::object())});
    } else if (kind == "B") {
      open[track].push_back({event["name"], begin, 0});
    } else {
      EXPECT_EQ(kind, "E");
      if (open[track].empty()) {
        ADD_FAILURE() << "an end without a beginning";
        continue;
      }
      slices[track].push_back(open[track].back());
      slices[track].back().end = begin;
      open[track].pop_back();
    }
  }
  for (const auto& [track, left] : open) EXPECT_THAT(left, IsEmpty());
  return slices;
}

// A track's fault: two slices that overlap without one containing the other.
std::string overlap_in(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<Slice> around;
  for (const Slice& slice : slices) {
    if (slice.end < slice.begin) return slice.name + " ends before it begins";
    while (!around.empty() && around.back().end <= slice.begin) around.pop_back();
    if (!around.empty() && slice.end > around.back().end) {
      return slice.name + " overlaps " + around.back().name;
    }
    around.push_back(slice);
  }
  return {};
}

std::vector<Slice> named(const std::vector<Slice>& slices, const std::string& name) {
  std::vector<Slice> found;
  std::copy_if(slices.begin(), slices.end(), std::back_inserter(found),
               [&name](const Slice& slice) { return slice.name == name; });
  return found;
}

// The text's slices of rounds in which it was decoded.
std::vector<Slice> decoded(const std::vector<Slice>& slices) {
  std::vector<Slice> found;
  for (const Slice& slice : named(slices, "round")) {
    if (slice.args.contains("emitted")) found.push_back(slice);
  }
  return found;
}

std::int64_t sum_of(const std::vector<Slice>& slices, const char* arg) {
  std::int64_t sum = 0;
  for (const Slice& slice : slices) sum += slice.args[arg].get<std::int64_t>();
  return sum;
}

class RoundTraces : public ::testing::Test {
 protected:
  static constexpr int kFirstTextTrack = 1000;

  static void SetUpTestSuite() {
    directory_ = std::make_unique<test::TemporaryDirectory>();
    test::write_tiny_pair(directory_->path());
    model_ = load(0);
  }
  static void TearDownTestSuite() {
    model_.reset();
    directory_.reset();
  }
  static std::shared_ptr<const Model> load(std::uint64_t kv_memory_bytes) {
    return Model::load(directory_->path() / "target",
                       {.kv_memory_bytes = kv_memory_bytes, .threads = 1});
  }
  static std::string draft() { return "model:" + (directory_->path() / "draft").string(); }
  static std::filesystem::path file() { return directory_->path() / "trace.json"; }
  static std::string read() {
    std::ifstream stream(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  // Six texts, two at a time, with different drafters and prompt lengths.
  static std::vector<GenerateResult> run(Batch& batch, int max_tokens = 24) {
    std::vector<GenerateResult> results(6);
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::string prompt = "A small test.";
      for (std::size_t n = 0; n < 20 * i; ++n) prompt += " and so on";
      GenerateRequest request{.prompt = model_->tokenizer().encode(prompt, true),
                              .options = {.max_tokens = max_tokens, .ignore_eos = true}};
      request.options.sampling.temperature = i % 2 == 0 ? 0 : 0.8;
      const SpeculationOptions speculation{
          .drafter = i == 5 ? "none" : (i % 2 == 0 ? draft() : "suffix"), .verify = "coupled"};
      batch.submit(std::move(request), speculation,
                   [&results, i](GenerateResult result, std::exception_ptr error) {
                     EXPECT_EQ(error, nullptr);
                     results[i] = std::move(result);
                   });
    }
    while (batch.step()) {
    }
    return results;
  }
  static Batch batch_with(std::shared_ptr<RoundObserver> observer,
                          const std::shared_ptr<const Model>& model = model_) {
    const std::vector<std::string> drafters = {draft(), "suffix"};
    return Batch(model, drafters, {.threads = 1},
                 {.max_running = 2, .prompt_rows = 16, .observer = std::move(observer)});
  }

  static inline std::unique_ptr<test::TemporaryDirectory> directory_;
  static inline std::shared_ptr<const Model> model_;
};

TEST_F(RoundTraces, SlicesNestAndCountsAreThoseOfTheResults) {
  std::vector<GenerateResult> results;
  {
    RoundTrace trace(file());
    Batch batch = batch_with(trace.observer("a \"model\""));
    results = run(batch);
    EXPECT_EQ(trace.failure(), "");
  }
  const json events = json::parse(read());
  const auto tracks = slices_of(events);
  for (const auto& [track, slices] : tracks) EXPECT_EQ(overlap_in(slices), "") << track.second;

  const std::vector<Slice>& steps = tracks.at({1, 1});
  const std::vector<Slice> rounds = named(steps, "round");
  for (const char* step : {"plan", "target pass", "verify", "commit"}) {
    EXPECT_EQ(named(steps, step).size(), rounds.size()) << step;
  }
  EXPECT_FALSE(named(steps, "draft model").empty());
  EXPECT_FALSE(named(steps, "draft suffix").empty());
  EXPECT_EQ(named(steps, "draft model")[0].args["drafter"], draft());

  std::int64_t n_parts = 0;
  std::int64_t n_prompt_rows = 0;
  ASSERT_EQ(tracks.size(), 1 + results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<Slice>& slices = tracks.at({1, kFirstTextTrack + static_cast<int>(i)});
    const GenerateStatistics& statistics = results[i].statistics;
    const std::vector<Slice> own = decoded(slices);
    EXPECT_EQ(static_cast<std::int64_t>(own.size()), statistics.target_passes);
    EXPECT_EQ(sum_of(own, "accepted"), statistics.accepted);
    EXPECT_EQ(sum_of(own, "drafted"), statistics.drafted);
    EXPECT_EQ(sum_of(own, "emitted"), statistics.emitted);
    for (const Slice& slice : own) {
      EXPECT_LE(slice.args["depth"], slice.args["drafted"]);
      EXPECT_LE(slice.args["accepted"], slice.args["depth"]);
    }
    for (const char* phase : {"queue", "prefill", "decode"}) {
      EXPECT_EQ(named(slices, phase).size(), 1U) << phase;
    }
    EXPECT_EQ(named(slices, "queue")[0].end, named(slices, "prefill")[0].begin);
    EXPECT_EQ(named(slices, "prefill")[0].end, named(slices, "decode")[0].begin);
    const std::vector<Slice> all = named(slices, "round");
    n_parts += static_cast<std::int64_t>(all.size());
    for (const Slice& slice : all) n_prompt_rows += slice.args.value("rows", 0);
  }
  EXPECT_EQ(sum_of(named(steps, "target pass"), "texts"), n_parts);
  EXPECT_EQ(sum_of(named(steps, "target pass"), "prompt_rows"), n_prompt_rows);
  EXPECT_EQ(events[0]["args"]["name"], "a \"model\"");
}

// The check above can fail.
TEST_F(RoundTraces, AnOverlapIsSeen) {
  EXPECT_EQ(overlap_in({{"a", 0, 5}, {"b", 1, 5}, {"c", 1, 3}, {"d", 3, 4}, {"e", 5, 9}}), "");
  EXPECT_EQ(overlap_in({{"a", 0, 5}, {"b", 1, 4}, {"c", 2, 5}}), "c overlaps b");
  EXPECT_EQ(overlap_in({{"a", 2, 1}}), "a ends before it begins");
}

TEST_F(RoundTraces, TextsAreTheSameWithoutOneAndNoFileIsThere) {
  std::filesystem::remove(file());
  Batch plain = batch_with(nullptr);
  const std::vector<GenerateResult> expected = run(plain);
  EXPECT_FALSE(std::filesystem::exists(file()));
  RoundTrace trace(file());
  Batch traced = batch_with(trace.observer("model"));
  const std::vector<GenerateResult> results = run(traced);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].ids, expected[i].ids);
    EXPECT_EQ(results[i].text, expected[i].text);
    EXPECT_EQ(results[i].accepted_per_round, expected[i].accepted_per_round);
  }
}

// The state after a killed program: only the array's closing bracket is missing.
TEST_F(RoundTraces, LacksItsBracketAloneWhileItIsWritten) {
  RoundTrace trace(file());
  Batch batch = batch_with(trace.observer("model"));
  std::size_t n_before = 0;
  batch.submit({.prompt = model_->tokenizer().encode("A small test.", true),
                .options = {.max_tokens = 8, .ignore_eos = true}},
               {.drafter = "suffix"}, [](GenerateResult, std::exception_ptr) {});
  for (bool more = true; more;) {
    more = batch.step();
    const json events = json::parse(read() + "]");
    EXPECT_GE(events.size(), n_before);
    n_before = events.size();
  }
  EXPECT_GT(n_before, 10U);
}

TEST_F(RoundTraces, BatchesOfOneFileAreProcessesOfTheirOwn) {
  {
    RoundTrace trace(file());
    Batch first = batch_with(trace.observer("first"));
    Batch second = batch_with(trace.observer("second"));
    run(first, 4);
    run(second, 4);
  }
  const auto tracks = slices_of(json::parse(read()));
  for (const auto& [track, slices] : tracks) EXPECT_EQ(overlap_in(slices), "");
  EXPECT_TRUE(tracks.contains({1, 1}));
  EXPECT_TRUE(tracks.contains({2, 2}));
  EXPECT_EQ(tracks.size(), 14U);
}

// Preempted texts wait again, and are run again.
TEST_F(RoundTraces, TextsThatGiveWayWaitAgain) {
  const auto bytes_per_token = static_cast<std::uint64_t>(model_->summary().kv_bytes_per_token);
  constexpr std::uint64_t kPages = 9;
  const auto small = load(kPages * kPageTokens * bytes_per_token);
  std::int64_t n_preempted = 0;
  {
    RoundTrace trace(file());
    Batch batch = batch_with(trace.observer("model"), small);
    int n_ended = 0;
    for (int n = 0; n < 3; ++n) {
      batch.submit({.prompt = model_->tokenizer().encode("A small test.", true),
                    .options = {.max_tokens = 5 * kPageTokens, .ignore_eos = true}},
                   {.drafter = draft()}, [&n_ended](GenerateResult, std::exception_ptr error) {
                     EXPECT_EQ(error, nullptr);
                     ++n_ended;
                   });
    }
    while (batch.step()) {
    }
    EXPECT_EQ(n_ended, 3);
    n_preempted = batch.load().n_preempted;
  }
  ASSERT_GT(n_preempted, 0);
  std::int64_t n_queued = 0;
  const auto tracks = slices_of(json::parse(read()));
  for (const auto& [track, slices] : tracks) {
    EXPECT_EQ(overlap_in(slices), "");
    n_queued += static_cast<std::int64_t>(named(slices, "queue").size());
  }
  // One that is preempted before its first round has waited once.
  EXPECT_GT(n_queued, 3);
  EXPECT_LE(n_queued, 3 + n_preempted);
}

TEST_F(RoundTraces, TextsThatNeverRunOrFailAreThere) {
  {
    RoundTrace trace(file());
    Batch batch = batch_with(trace.observer("model"));
    GenerateRequest request{.prompt = model_->tokenizer().encode("A small test.", true),
                            .options = {.max_tokens = 0}};
    batch.submit(request, {}, {});
    request.options.max_tokens = 8;
    request.options.on_token = [](const TokenEvent&) { throw std::runtime_error("no more"); };
    batch.submit(request, {}, {});
    while (batch.step()) {
    }
  }
  const json events = json::parse(read());
  const auto tracks = slices_of(events);
  EXPECT_EQ(named(tracks.at({1, kFirstTextTrack}), "queue").size(), 1U);
  EXPECT_EQ(named(tracks.at({1, kFirstTextTrack + 1}), "decode").size(), 1U);
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const json& event) { return event["ph"] == "i"; }),
            1);
}

TEST_F(RoundTraces, AFileThatCannotBeWrittenEndsNoText) {
  EXPECT_THROW(RoundTrace(directory_->path()), Error);
  EXPECT_THROW(RoundTrace(directory_->path() / "nowhere" / "trace.json"), Error);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  RoundTrace trace("/dev/full");
  Batch batch = batch_with(trace.observer("model"));
  for (const GenerateResult& result : run(batch, 4)) EXPECT_EQ(result.ids.size(), 4U);
  EXPECT_THAT(trace.failure(), HasSubstr("[write trace] /dev/full: No space left"));
}

TEST_F(RoundTraces, AGeneratorHasThemToo) {
  GenerateResult result;
  {
    RoundTrace trace(file());
    Generator generator(model_, {.drafter = draft(), .drafter_options = {.threads = 1}});
    generator.observe_rounds(trace.observer("model"));
    result = generator.generate("A small test.", {.max_tokens = 12, .ignore_eos = true});
    generator.observe_rounds(nullptr);
    (void)generator.generate("A small test.", {.max_tokens = 12, .ignore_eos = true});
  }
  const auto tracks = slices_of(json::parse(read()));
  EXPECT_EQ(tracks.size(), 2U);
  const std::vector<Slice> own = decoded(tracks.at({1, kFirstTextTrack}));
  EXPECT_EQ(static_cast<std::int64_t>(own.size()), result.statistics.target_passes);
  EXPECT_EQ(sum_of(own, "accepted"), result.statistics.accepted);
}

}  // namespace
}  // namespace outrider
