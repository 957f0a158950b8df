// SPDX-License-Identifier: Apache-2.0
// Reports agree with the records: figures are computed again from the rounds of the JSON report, by
// sums written here, and compared with every cell of the CSV and HTML reports.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "measure/comparison/comparison_plots.h"
#include "outrider/method_report.h"
#include "tests/support/made_comparison.h"
#include "tests/support/near.h"

namespace outrider {
namespace {

using nlohmann::json;
using test::made_comparison;
using test::near;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Twelve prompts in two categories, two temperatures and two methods besides plain decoding, with
// figures that vary between prompts.
MethodComparison varied_comparison() {
  MethodComparison comparison = made_comparison();
  comparison.options.methods = read_methods("eagle:a@chain:length=2,suffix@chain:length=3");
  comparison.options.temperatures = {0, 1};
  comparison.options.prompts.clear();
  const MethodComparison made = made_comparison();
  comparison.rounds.clear();
  for (std::size_t prompt = 0; prompt < 12; ++prompt) {
    ComparedPrompt asked = made.options.prompts[prompt % 2];
    asked.id = std::to_string(prompt);
    comparison.options.prompts.push_back(asked);
    for (const double temperature : {0.0, 1.0}) {
      ComparedRound round = made.rounds[prompt % 2];
      round.prompt = prompt;
      round.temperature = temperature;
      round.samples.push_back(round.samples[1]);
      const double slower = 1 + 0.01 * static_cast<double>(prompt) + temperature;
      round.samples[1].decode_seconds *= slower;
      round.samples[2].decode_seconds *= 1.5 - 0.02 * static_cast<double>(prompt);
      round.samples[2].draft_seconds = 0.01 * slower;
      round.samples[2].first_difference = prompt == 3 ? 5 : -1;
      round.samples[2].outcomes = {{.levels = 0, .nodes = 0, .accepted = 0, .n = 3},
                                   {.levels = 3, .nodes = 3, .accepted = 2, .n = 4},
                                   {.levels = 3, .nodes = 3, .accepted = 3, .n = 1}};
      comparison.rounds.push_back(round);
    }
  }
  return comparison;
}

// ĉ of the JSON report, by linear interpolation.
double cost_of(const json& report, double rows) {
  const json& passes = report["passes"]["passes"];
  const double one = passes[0]["seconds"]["median"];
  for (std::size_t i = 1; i < passes.size(); ++i) {
    const double from = passes[i - 1]["rows"];
    const double to = passes[i]["rows"];
    if (rows > to) continue;
    const double low = passes[i - 1]["seconds"]["median"];
    const double high = passes[i]["seconds"]["median"];
    return (low + (high - low) * (rows - from) / (to - from)) / one;
  }
  return std::nan("");
}

// The values of one set of the report's figures, from its rounds alone (one repeat each).
std::map<std::string, double> recomputed(const json& report, const json& figures) {
  std::size_t method = 0;
  while (report["settings"]["methods"][method]["name"] != figures["method"]) ++method;
  std::map<std::string, double> sums;
  std::vector<double> speeds;
  std::map<int, double> reached;
  std::map<int, double> stood;
  for (const json& round : report["rounds"]) {
    const json& prompt = report["prompts"][round["prompt"].get<std::size_t>()];
    if (round["temperature"] != figures["temperature"]) continue;
    if (figures["category"] != "" && figures["category"] != prompt["category"]) continue;
    const json& plain = round["samples"][0];
    const json& sample = round["samples"][method];
    const auto add = [&sums](const std::string& name, double value) { sums[name] += value; };
    const double plain_tokens = plain["emitted"];
    const double tokens = sample["emitted"];
    const double seconds = sample["decode_seconds"];
    add("n", 1);
    add("same", sample["first_difference"] == -1 ? 1 : 0);
    add("plain", plain["decode_seconds"]);
    add("plain_tokens", plain_tokens);
    add("time", seconds / tokens * plain_tokens);
    add("first", sample["first_token_seconds"]);
    add("plain_first", plain["first_token_seconds"]);
    add("request", sample["request_seconds"]);
    add("plain_request", plain["request_seconds"]);
    add("tokens", tokens);
    add("passes", sample["target_passes"]);
    for (const char* part : {"decode", "draft", "target", "verify"}) {
      add(part, sample[std::string(part) + "_seconds"]);
    }
    speeds.push_back(tokens / seconds);
    for (const json& outcome : sample["outcomes"]) {
      const int levels = outcome[0];
      const int nodes = outcome[1];
      const int accepted = outcome[2];
      const double n = outcome[3];
      add("levels", n * levels);
      add("bound_tokens", n * (accepted + 1));
      add("bound_levels", n * accepted);
      add("oracle_cost", n * cost_of(report, accepted + 1));
      add("drafted_cost", n * cost_of(report, nodes + 1));
      for (int place = 1; place <= levels && place <= accepted + 1; ++place) {
        reached[place] += n;
        stood[place] += place <= accepted ? n : 0;
      }
    }
  }
  std::map<std::string, double> values;
  values["prompts"] = sums["n"];
  values["same_texts"] = sums["same"];
  values["speedup"] = sums["plain"] / sums["time"];
  values["request_speedup"] = sums["plain_request"] / sums["request"];
  values["first_token_ratio"] = sums["first"] / sums["plain_first"];
  values["tau"] = sums["tokens"] / sums["passes"];
  std::sort(speeds.begin(), speeds.end());
  values["tokens_per_second"] = (speeds[speeds.size() / 2] + speeds[(speeds.size() - 1) / 2]) / 2;
  double rest = 1;
  for (const char* part : {"draft", "target", "verify"}) {
    values[std::string(part) + "_share"] = sums[part] / sums["decode"];
    rest -= sums[part] / sums["decode"];
  }
  values["rest_share"] = rest;
  for (const auto& [place, n] : reached) {
    values[fmt::format("acceptance_{}", place)] = stood[place] / n;
  }
  if (method == 0) return values;
  const double level = sums["draft"] / sums["levels"] / (sums["plain"] / sums["plain_tokens"]);
  values["level_cost"] = level;
  values["oracle_length"] =
      sums["bound_tokens"] / (sums["oracle_cost"] + sums["bound_levels"] * level);
  values["free_drafting"] = sums["bound_tokens"] / sums["drafted_cost"];
  values["oracle_share"] = values["speedup"] / values["oracle_length"];
  double perfect = 1;
  for (int length = 1; length < 8; ++length) {
    const double speedup = (length + 1) / (cost_of(report, length + 1) + length * level);
    if (speedup > perfect) values["perfect_length"] = length;
    perfect = std::max(perfect, speedup);
  }
  values["perfect_drafter"] = perfect;
  return values;
}

// A figure of the JSON report by its name in tables; null if there is none.
json figure_named(const json& figures, const std::string& name) {
  constexpr std::string_view kPlace = "acceptance_";
  if (!name.starts_with(kPlace)) return figures.value(name, json());
  const std::size_t place = std::stoul(name.substr(kPlace.size())) - 1;
  const json& places = figures["places"];
  return place < places.size() ? places[place]["acceptance"] : json();
}

class ComparisonReport : public ::testing::Test {
 protected:
  MethodComparison comparison_ = varied_comparison();
  std::vector<MethodFigures> figures_ = method_figures(comparison_);
  json report_ = json::parse(comparison_json(comparison_, figures_));
};

TEST_F(ComparisonReport, HasAllThatItsFiguresAreMadeOf) {
  EXPECT_EQ(report_["complete"], true);
  EXPECT_EQ(report_["settings"]["machine"]["processor"], "a processor");
  ASSERT_EQ(report_["figures"].size(), 18U);  // two temperatures, three methods, two and all
  for (const json& figures : report_["figures"]) {
    int n_compared = 0;
    for (const auto& [name, value] : recomputed(report_, figures)) {
      const json figure = figure_named(figures, name);
      if (figure.is_object() && figure["value"].is_null()) continue;  // texts differ
      const double printed = figure.is_object() ? figure["value"] : figure;
      // Sums of at most 12 prompts in either order: a few roundings of values near one.
      EXPECT_TRUE(near(printed, value, 1e-12 * std::max(1.0, std::fabs(value)))) << name;
      ++n_compared;
      if (!figure.is_object()) continue;
      EXPECT_LE(figure["low"], figure["value"]) << name;
      EXPECT_GE(figure["high"], figure["value"]) << name;
    }
    EXPECT_GE(n_compared, 11);
  }
}

// The fields of a line of CSV.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      fields.emplace_back();
    } else if (line[i] != '\r') {
      fields.back() += line[i];
    }
  }
  return fields;
}

TEST_F(ComparisonReport, IsTheSameAsCsv) {
  std::istringstream lines(comparison_csv(comparison_, figures_));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = fields_of(line);
  std::size_t row = 0;
  for (; std::getline(lines, line); ++row) {
    const std::vector<std::string> fields = fields_of(line);
    ASSERT_EQ(fields.size(), names.size());
    const json& figures = report_["figures"].at(row);
    EXPECT_EQ(fields[0], figures["method"]);
    EXPECT_EQ(fields[1], figures["category"] == "" ? json("all") : figures["category"]);
    for (std::size_t column = 2; column < fields.size(); ++column) {
      std::string name = names[column];
      std::string part = "value";
      for (const std::string end : {"low", "high"}) {
        if (!name.ends_with("_" + end)) continue;
        name.resize(name.size() - end.size() - 1);
        part = end;
      }
      json expected = figure_named(figures, name);
      if (expected.is_object()) expected = expected[part];
      if (name == "same_texts" && figures["promises_same_text"] == false) expected = nullptr;
      if (expected.is_null()) {
        EXPECT_EQ(fields[column], "") << names[column];
      } else {
        ASSERT_NE(fields[column], "") << names[column];
        EXPECT_EQ(std::stod(fields[column]), expected.get<double>()) << names[column];
      }
    }
  }
  EXPECT_EQ(row, report_["figures"].size());
}

// A figure as shown on the page.
std::string shown(const json& figures, const std::string& name) {
  const json figure = figure_named(figures, name);
  if (name == "has_alphas") return figure == true ? "place n + 1" : "-";
  if (name == "same_texts") {
    if (figures["promises_same_text"] == false) return "not comparable";
    return fmt::format("{} of {}", figure.get<int>(), figures["prompts"].get<int>());
  }
  if (figure.is_number()) return fmt::format("{}", figure.get<int>());
  if (figure.is_null() || figure["value"].is_null()) return "-";
  const auto number = [](const json& value, double scale, int digits) {
    return fmt::format("{:.{}f}", value.get<double>() * scale, digits);
  };
  const bool is_share = name.ends_with("_share") && name != "oracle_share";
  const double scale = is_share ? 100 : 1;
  const int digits = is_share ? 0 : name == "tokens_per_second" ? 1 : name == "level_cost" ? 3 : 2;
  return fmt::format("{}{} ({} to {})", number(figure["value"], scale, digits), is_share ? "%" : "",
                     number(figure["low"], scale, digits), number(figure["high"], scale, digits));
}

TEST_F(ComparisonReport, IsTheSameAsAPage) {
  const std::string page = comparison_html(comparison_, figures_);
  const std::regex row("<tr data-row=\"([0-9]+)\"[^>]*>(.*)</tr>");
  const std::regex cell("<td data-name=\"([a-z_0-9]+)\">([^<]*)</td>");
  std::istringstream lines(page);
  std::string line;
  int n_cells = 0;
  while (std::getline(lines, line)) {
    std::smatch found;
    if (!std::regex_search(line, found, row)) continue;
    const json& figures = report_["figures"].at(std::stoul(found[1]));
    const std::string cells = found[2];
    for (std::sregex_iterator at(cells.begin(), cells.end(), cell), end; at != end; ++at) {
      EXPECT_EQ((*at)[2], shown(figures, (*at)[1])) << found[1] << " " << (*at)[1];
      ++n_cells;
    }
  }
  // 18 rows of gains with 6 columns, 12 of bounds with 6, 6 of times with 4, 12 of places with 6.
  EXPECT_EQ(n_cells, 18 * 6 + 12 * 6 + 6 * 4 + 12 * 6);
}

// More methods than colours: no two are drawn alike.
TEST(SpeedupPlot, GivesEachOfManyMethodsAMarkOfItsOwn) {
  constexpr std::size_t kMethods = 25;
  std::vector<MethodFigures> figures(kMethods);
  std::vector<std::string> labels;
  labels.reserve(kMethods);
  for (std::size_t method = 0; method < kMethods; ++method) {
    figures[method].method = method;
    figures[method].speedup = {.value = 1, .low = 0.9, .high = 1.1};
    labels.push_back(fmt::format("method {}", method));
  }
  const std::string plot = speedup_plot(figures, labels);
  const std::regex mark("<path d=\"M[0-9.]+ [0-9.]+([^\"]+)\" fill=\"([^\"]+)\"><title>([^<]*)<");
  std::map<std::string, std::string> of_method;  // outline and colour in the legend
  std::set<std::string> different;
  std::size_t n_marks = 0;
  for (std::sregex_iterator at(plot.begin(), plot.end(), mark), end; at != end; ++at, ++n_marks) {
    const std::string drawn = (*at)[1].str() + (*at)[2].str();
    const std::string remark = (*at)[3];
    if (n_marks < kMethods - 1) {
      of_method[remark] = drawn;
      different.insert(drawn);
    } else {
      EXPECT_EQ(drawn, of_method.at(remark.substr(0, remark.find(',')))) << remark;
    }
  }
  EXPECT_EQ(n_marks, 2 * (kMethods - 1));
  EXPECT_EQ(different.size(), kMethods - 1);
  EXPECT_EQ(plot.find("var(--method-0)"), std::string::npos);
}

TEST_F(ComparisonReport, IsAPageThatNeedsNothingElse) {
  const std::string page = comparison_html(made_comparison(), method_figures(made_comparison()));
  for (const char* outside : {"http", "src=", "href", "@import", "url(", "<script"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, AllOf(HasSubstr("prefers-color-scheme: dark"), HasSubstr("How to read it"),
                          HasSubstr("models/draft &lt;&amp;&gt;"), HasSubstr("oracle length =")));
  std::size_t n_pictures = 0;
  for (std::size_t at = page.find("<svg"); at != std::string::npos;
       at = page.find("<svg", at + 1)) {
    ++n_pictures;
  }
  EXPECT_EQ(n_pictures, 3U);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf\""))));
}

TEST_F(ComparisonReport, PutsTheWorstCategoryFirstInItsTables) {
  const std::string text = comparison_text(made_comparison(), method_figures(made_comparison()));
  const std::size_t hard = text.find("  hard, \"very\"  1        0.80");
  const std::size_t easy = text.find("  easy          1        2.00");
  ASSERT_NE(hard, std::string::npos) << text;
  ASSERT_NE(easy, std::string::npos) << text;
  EXPECT_LT(hard, easy);
  EXPECT_THAT(text, AllOf(HasSubstr("2 of 2"), HasSubstr("n-alpha"), HasSubstr("a processor"),
                          HasSubstr("perfect drafter = max over L")));
}

TEST_F(ComparisonReport, SaysThatARunWasCutOff) {
  comparison_.rounds.resize(5);
  const auto figures = method_figures(comparison_);
  EXPECT_EQ(json::parse(comparison_json(comparison_, figures))["complete"], false);
  EXPECT_THAT(comparison_text(comparison_, figures), HasSubstr("5 of 24 rounds are here"));
  EXPECT_THAT(comparison_html(comparison_, figures), HasSubstr("5 of 24 rounds are here"));
}

}  // namespace
}  // namespace outrider
