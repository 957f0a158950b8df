// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/reference_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/files/files_below.h"
#include "base/files/mapped_file.h"
#include "outrider/error.h"
#include "speculate/drafters/lookup/rated_chain.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "read reference";

std::vector<fs::path> files_of(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files = files_below(path);
  if (files.empty()) throw Error(kOperation, path, "files in it", "none");
  return files;
}

std::unique_ptr<Drafter> make(const std::vector<std::string>& paths,
                              const ReferenceDrafter::Options& options,
                              const DrafterMaterials& materials) {
  std::vector<std::vector<TokenId>> documents;
  for (const std::string& path : paths) {
    for (const fs::path& file : files_of(path)) {
      const MappedFile mapped(file);
      documents.push_back(materials.tokenize(
          {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()},
          file.string()));
    }
  }
  return std::make_unique<ReferenceDrafter>(documents, materials.vocabulary_size, options);
}

}  // namespace

ReferenceDrafter::ReferenceDrafter(const std::vector<std::vector<TokenId>>& documents,
                                   int vocabulary_size, const Options& options)
    : options_(options) {
  std::size_t n_tokens = 0;
  for (const auto& document : documents) n_tokens += document.size() + 1;
  if (n_tokens == documents.size()) throw Error(kOperation, "documents", "text", "none");
  if (n_tokens > kMaxTokens) {
    throw Error(kOperation, "documents", fmt::format("at most {} tokens", kMaxTokens),
                fmt::format("{}", n_tokens));
  }
  tokens_.reserve(n_tokens);
  for (const auto& document : documents) {
    for (const TokenId token : document) {
      tokens_.push_back(token < vocabulary_size ? token : kNoToken);
    }
    tokens_.push_back(kNoToken);
  }
  for (const TokenId token : tokens_) index_.append(token);
}

// The position after the first occurrence that does not end its document.
std::size_t ReferenceDrafter::continuation(int state) const {
  // Every document ends with kNoToken, so every occurrence has a next entry.
  const auto first = static_cast<std::size_t>(index_.state(state).first_end) + 1;
  if (tokens_[first] != kNoToken) return first;
  std::size_t earliest = kNowhere;
  for (const SuffixAutomaton::Transition& next : index_.state(state).next) {
    if (next.token == kNoToken) continue;
    earliest = std::min(earliest, static_cast<std::size_t>(index_.state(next.state).first_end));
  }
  return earliest;
}

void ReferenceDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    const std::span<const TokenId> tokens = job.context->tokens;
    SuffixAutomaton::Match match;
    for (const TokenId token : tokens.last(std::min<std::size_t>(tokens.size(), kLongestContext))) {
      index_.advance(match, token, kLongestContext);
    }
    std::size_t source = continuation(match.state);
    while (match.length >= options_.shortest && source == kNowhere) {
      match.state = index_.state(match.state).link;
      match.length = index_.state(match.state).length;
      source = continuation(match.state);
    }
    if (match.length < options_.shortest) continue;
    const int length = std::min({options_.length, job.budget.depth, job.budget.n_nodes});
    RatedChain chain(job.worth, match.length);
    for (int node = 0; node < length && tokens_[source] != kNoToken; ++node, ++source) {
      if (!chain.goes_on(node, tokens_[source])) break;
      job.tree->add_child(node, tokens_[source], kPointMass);
    }
  }
}

DrafterPlan read_reference_drafter(const Spec& spec) {
  spec.require_no_value();
  const std::vector<std::string> files = spec.texts("file");
  if (files.empty() || std::count(files.begin(), files.end(), "") > 0) {
    throw UsageError("read drafter", "reference", "file=, a text or a folder of texts", "none");
  }
  ReferenceDrafter::Options options;
  options.shortest =
      spec.integer("min", 1, ReferenceDrafter::kLongestContext).value_or(options.shortest);
  options.length = spec.integer("length", 1, kMaxDraftNodes).value_or(options.length);
  return {.traits = {},
          .shape = chain_shape(options.length),
          .make = [files, options](const DrafterMaterials& materials) {
            return make(files, options, materials);
          }};
}

}  // namespace outrider
