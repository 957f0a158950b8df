#include "speculate/drafters/relay_drafter.h"

#include <algorithm>
#include <utility>

#include "outrider/error.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "speculate/tree_shapes/open_shape.h"

namespace outrider {
namespace {

// The first of the deepest drafted nodes.
int deepest(const DraftTree& tree) {
  int leaf = 0;
  for (int node = 1; node <= tree.n_drafted(); ++node) {
    if (tree.node(node).depth > tree.node(leaf).depth) leaf = node;
  }
  return leaf;
}

}  // namespace

bool RelayDrafter::Stop::stop_after(TokenId token, double raw_prob) const {
  ended_ = ended_ || (whole_ != nullptr && whole_->stop_after(token, raw_prob));
  return ended_ || raw_prob < confidence_;
}

RelayDrafter::RelayDrafter(std::vector<PartedDrafter::Part> parts, const DrafterTraits& traits)
    : parts_(std::move(parts)), traits_(traits) {
  for (const PartedDrafter::Part& part : parts_)
    chains_.push_back(chain_shape(part.shape->depth()));
}
RelayDrafter::~RelayDrafter() = default;

void RelayDrafter::begin(const Context& context) {
  Text& text = texts_[context.id];
  text.parts = std::vector<PartOfText>(parts_.size());
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    text.parts[part].tokens.assign(context.tokens.begin(), context.tokens.end());
    parts_[part].drafter->begin(context);
  }
}

void RelayDrafter::prefill(const Context& context, std::span<const TokenId> tokens,
                           const FeatureRows& features) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    parts_[part].drafter->prefill(context, tokens, part == 0 ? features : FeatureRows{});
  }
}

// Lets a part take the text as far as a node of the draft for its own.
void RelayDrafter::show(std::size_t part, PartOfText& own, const DraftJob& job, int leaf) {
  own.context = *job.context;
  if (part == 0) return;  // whose text is the real one
  const std::span<const TokenId> text = job.context->tokens;
  job.tree->path_tokens(leaf, path_);
  std::size_t n_common = 0;
  while (n_common < std::min(own.tokens.size(), text.size()) &&
         own.tokens[n_common] == text[n_common]) {
    ++n_common;
  }
  const bool as_it_was = n_common == own.tokens.size() && n_common == text.size();
  own.tokens.resize(n_common);
  own.tokens.insert(own.tokens.end(), text.begin() + static_cast<std::ptrdiff_t>(n_common),
                    text.end());
  own.tokens.insert(own.tokens.end(), path_.begin(), path_.end());
  own.history = *job.context->history;
  for (const TokenId token : path_) own.history.add_generated(token);
  own.context.tokens = own.tokens;
  own.context.history = &own.history;
  if (!as_it_was || !path_.empty()) parts_[part].drafter->rewind(own.context, n_common);
}

void RelayDrafter::propose(std::span<DraftJob> jobs) {
  going_on_.clear();
  for (DraftJob& job : jobs) {
    going_on_.push_back(&job);
    for (PartOfText& own : texts_.at(job.context->id).parts) own.drafted = false;
  }
  for (std::size_t part = 0; part < parts_.size() && !going_on_.empty(); ++part) {
    const PartedDrafter::Part& drafting = parts_[part];
    jobs_.clear();
    std::erase_if(going_on_, [&](DraftJob* whole) {
      const int leaf = deepest(*whole->tree);
      const int depth = whole->tree->node(leaf).depth;
      const TreeShape& shape = whole->shape->is_chain() && !drafting.shape->is_chain()
                                   ? *chains_[part]
                                   : *drafting.shape;
      DraftJob job = *whole;
      job.budget = {
          .depth = std::min(whole->budget.depth - depth, shape.depth()),
          .n_nodes = std::min(whole->budget.n_nodes - whole->tree->n_drafted(), shape.n_nodes()),
          .scratch_depth = whole->budget.scratch_depth - depth};
      if (job.budget.depth <= 0 || job.budget.n_nodes <= 0) return true;
      PartOfText& own = texts_.at(whole->context->id).parts[part];
      show(part, own, *whole, leaf);
      const std::span<const TokenId> tokens = own.context.tokens;
      own.tree.reset(tokens.back(), static_cast<std::int64_t>(tokens.size()));
      own.whole.assign(1, leaf);
      own.drafted = true;
      // The round's own position: a later round may begin where this part does.
      own.chance.reset(*whole->chance, {.stride = static_cast<int>(parts_.size()),
                                        .lane = static_cast<int>(part),
                                        .position = whole->tree->n_committed()});
      own.stop.emplace(whole->stop, drafting.confidence);
      job.context = &own.context;
      job.shape = &shape;
      job.stop = &*own.stop;
      job.chance = &own.chance;
      job.tree = &own.tree;
      jobs_.push_back(job);
      return false;
    });
    if (jobs_.empty()) break;
    drafting.drafter->propose(jobs_);
    std::erase_if(going_on_, [&](DraftJob* whole) {
      PartOfText& own = texts_.at(whole->context->id).parts[part];
      graft(own, *whole, traits_.has_draft_prob);
      return own.stop->ended();
    });
  }
  // Scratch nodes stand behind all drafted ones, as far as a pass has room.
  for (DraftJob& job : jobs) {
    for (PartOfText& own : texts_.at(job.context->id).parts) {
      if (!own.drafted) continue;
      if (job.tree->n_nodes() + own.tree.n_scratch() > kMostDraftNodes + 1) {
        own.tree.drop_scratch();
      }
      for (int node = own.tree.n_drafted() + 1; node < own.tree.n_nodes(); ++node) {
        const DraftNode& from = own.tree.node(node);
        own.whole.push_back(
            job.tree->add_scratch(own.whole[static_cast<std::size_t>(from.parent)], from.token));
      }
    }
  }
}

void RelayDrafter::graft(PartOfText& own, DraftJob& job, bool has_draft_prob) {
  DraftTree& tree = *job.tree;
  // Laws are copied once each, since siblings drawn without replacement share one.
  std::vector<int> laws;
  const auto copied = [&](int law) {
    if (law < 0) return law;
    const auto index = static_cast<std::size_t>(law);
    if (index >= laws.size()) laws.resize(index + 1, kNoDistribution);
    if (laws[index] < 0) {
      laws[index] = tree.add_distribution();
      tree.distribution(laws[index]) = own.tree.distribution(law);
    }
    return laws[index];
  };
  for (int node = 0; node <= own.tree.n_drafted(); ++node) {
    const DraftNode& from = own.tree.node(node);
    if (node > 0) {
      own.whole.push_back(tree.add_child(own.whole[static_cast<std::size_t>(from.parent)],
                                         from.token, copied(from.proposal), from.draws));
    }
    const int at = own.whole.back();
    if (has_draft_prob && from.draft_prob != kNoDistribution) {
      tree.set_draft_prob(at, copied(from.draft_prob));
      if (from.raw_draft != kNoDistribution) tree.set_raw_draft(at, copied(from.raw_draft));
    }
  }
}

// No scratch nodes if a drafter around this one had no room for them.
void RelayDrafter::match(PartOfText& own, const DraftTree& tree) {
  if (own.drafted && own.whole.back() >= tree.n_nodes()) {
    own.tree.drop_scratch();
    own.whole.resize(static_cast<std::size_t>(own.tree.n_drafted()) + 1);
  }
}

bool RelayDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                            Distribution& draft_prob, Distribution* raw_draft) {
  Text& text = texts_.at(context.id);
  // The part whose turn it was there: the last that has the node.
  for (std::size_t part = parts_.size(); part-- > 0;) {
    PartOfText& own = text.parts[part];
    if (!own.drafted) continue;
    match(own, tree);
    const auto at = std::find(own.whole.begin(), own.whole.end(), node);
    if (at == own.whole.end()) continue;
    if (parts_[part].drafter->draft_at(own.context, own.tree,
                                       static_cast<int>(at - own.whole.begin()), draft_prob,
                                       raw_draft)) {
      return true;
    }
  }
  return false;
}

void RelayDrafter::observe(std::span<const RoundResult> results) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    results_.clear();
    for (const RoundResult& whole : results) {
      PartOfText& own = texts_.at(whole.context->id).parts[part];
      if (!own.drafted) continue;
      match(own, *whole.tree);
      // What is accepted of the part's own draft, and the token behind it. Where the parts before
      // it failed there is none: for the part, its root was followed by something else.
      own.verdict.path.clear();
      own.verdict.next = whole.verdict->next;
      own.verdict.corrected = whole.verdict->corrected;
      bool reached = own.whole.front() == 0;
      for (const int node : whole.verdict->path) {
        if (!reached) {
          reached = node == own.whole.front();
          continue;
        }
        const auto at = std::find(own.whole.begin(), own.whole.end(), node);
        if (at == own.whole.end()) {
          own.verdict.next = whole.tree->node(node).token;
          own.verdict.corrected = true;
          break;
        }
        own.verdict.path.push_back(static_cast<int>(at - own.whole.begin()));
      }
      own.rows.clear();
      for (const int node : own.whole) {
        own.rows.push_back(whole.rows.empty() ? whole.first_row + node
                                              : whole.rows[static_cast<std::size_t>(node)]);
      }
      if (!reached) own.verdict.corrected = own.tree.n_drafted() > 0;
      if (part == 0) {
        own.context = *whole.context;
      } else {
        const std::size_t n_before = own.tokens.size();
        for (const int node : own.verdict.path) own.tokens.push_back(own.tree.node(node).token);
        own.tokens.push_back(own.verdict.next);
        for (std::size_t at = n_before; at < own.tokens.size(); ++at) {
          own.history.add_generated(own.tokens[at]);
        }
        own.context.tokens = own.tokens;
      }
      results_.push_back({.context = &own.context,
                          .tree = &own.tree,
                          .verdict = &own.verdict,
                          .features = part == 0 ? whole.features : FeatureRows{},
                          .target = whole.target,
                          .first_row = own.rows.front(),
                          .rows = own.rows});
    }
    if (!results_.empty()) parts_[part].drafter->observe(results_);
  }
  for (const RoundResult& whole : results) {
    for (PartOfText& own : texts_.at(whole.context->id).parts) own.drafted = false;
  }
}

void RelayDrafter::rewind(const Context& context, std::size_t n_common) {
  // The others look for themselves what has changed when their turn comes.
  parts_.front().drafter->rewind(context, n_common);
}

void RelayDrafter::end(SequenceId id) {
  for (const PartedDrafter::Part& part : parts_) part.drafter->end(id);
  texts_.erase(id);
}

std::int64_t RelayDrafter::n_passes() const {
  std::int64_t n_passes = 0;
  for (const PartedDrafter::Part& part : parts_) n_passes += part.drafter->n_passes();
  return n_passes;
}

DrafterPlan read_relay_drafter(std::span<const std::string> parts) {
  const std::vector<DrafterPlan> plans = read_parts("relay", "relay:A+B+...", parts);
  DrafterTraits traits{.has_draft_prob = true,
                       .prefix_determined = false,
                       .reads_features = plans.front().traits.reads_features};
  int depth = 0;
  int n_nodes = 0;
  bool chains = true;
  for (const DrafterPlan& plan : plans) {
    traits.has_draft_prob = traits.has_draft_prob && plan.traits.has_draft_prob;
    depth += plan.shape->depth();
    n_nodes += plan.shape->n_nodes();
    chains = chains && plan.shape->is_chain();
  }
  for (std::size_t part = 1; part < plans.size(); ++part) {
    if (!plans[part].traits.reads_features) continue;
    throw UsageError("read drafter", "relay",
                     "none but the first part to read features of the target", parts[part]);
  }
  depth = std::min(depth, kMostDraftNodes);
  n_nodes = std::min(n_nodes, kMostDraftNodes);
  std::shared_ptr<const TreeShape> shape = chain_shape(depth);
  if (!chains) shape = std::make_shared<OpenShape>(depth, n_nodes);
  return {.traits = traits,
          .shape = std::move(shape),
          .confidence = 0,  // each part has its own
          .make = [plans, traits](const DrafterMaterials& materials) {
            return std::make_unique<RelayDrafter>(make_parts(plans, materials), traits);
          }};
}

}  // namespace outrider
