#include "speculate/drafter_registry.h"

#include <algorithm>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "speculate/drafters/cascade_drafter.h"
#include "speculate/drafters/eagle_drafter.h"
#include "speculate/drafters/first_drafter.h"
#include "speculate/drafters/grammar_drafter.h"
#include "speculate/drafters/jacobi_drafter.h"
#include "speculate/drafters/layerskip_drafter.h"
#include "speculate/drafters/lookahead_drafter.h"
#include "speculate/drafters/medusa_drafter.h"
#include "speculate/drafters/merge_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/drafters/mtp_drafter.h"
#include "speculate/drafters/ngram_drafter.h"
#include "speculate/drafters/reference_drafter.h"
#include "speculate/drafters/relay_drafter.h"
#include "speculate/drafters/retrieval_drafter.h"
#include "speculate/drafters/spoiled_drafter.h"
#include "speculate/drafters/staged_drafter.h"
#include "speculate/drafters/suffix_drafter.h"

namespace outrider {
namespace {

constexpr DrafterKind kKinds[] = {
    {"model", "model:PATH[,length=K,confidence=C,updates=D,vocabulary=V,weights=W]",
     "a small model of the same vocabulary, or with vocabulary=shared of another, which drafts the "
     "tokens that both have, or with vocabulary=text text that is cut anew; K tokens, or with "
     "schedule=heuristic two more behind a draft accepted whole and one less behind others; drafts "
     "end behind a token less likely than C; what is put into D drafts from the next text on; "
     "weights=W holds its weights as f32, bf16, int8 or int4, whatever --weights says",
     true, read_model_drafter},
    {"eagle", "eagle:PATH[,confidence=C,weights=W]",
     "an EAGLE or EAGLE-3 head on the target's hidden states: outrider train eagle", true,
     read_eagle_drafter},
    {"medusa", "medusa:PATH[,confidence=C,weights=W]",
     "Medusa heads on the target's last hidden state: outrider train medusa", true,
     read_medusa_drafter},
    {"mtp", "mtp[:PATH][,confidence=C,weights=W]",
     "multi-token prediction modules in PATH, or else in the target's own directory: outrider "
     "train mtp",
     true, read_mtp_drafter},
    {"ngram", "ngram[:min=N,max=N,length=K,match=latest|first]",
     "prompt lookup: what followed the last tokens where they stood before", false,
     read_ngram_drafter},
    {"reference", "reference:file=F[,file=G,min=N,length=K]",
     "what follows the last tokens in given documents; a folder stands for its files", false,
     read_reference_drafter},
    {"suffix", "suffix[:length=K,total=N,cut=C,factor=F,across=TOKENS]",
     "what has followed the end of the text most often, in earlier texts too with across", false,
     read_suffix_drafter},
    {"retrieval", "retrieval:path=FILE",
     "what followed the last tokens in a large text: outrider datastore", false,
     read_retrieval_drafter},
    {"grammar", "grammar[:length=K]",
     "what the request's grammar makes certain; for first: and relay:", false,
     read_grammar_drafter},
    {"lookahead", "lookahead[:window=W,ngram=N,guesses=G]",
     "n-grams that the target itself writes in a Jacobi window", false, read_lookahead_drafter},
    {"layerskip", "layerskip:layers=L or layerskip:skip=I+J, with [,confidence=C]",
     "the target's own first L layers, or all but those listed, from 0", true,
     read_layerskip_drafter},
    {"jacobi", "jacobi[:length=K]", "what the target said behind its last guesses", false,
     read_jacobi_drafter},
    {"first", "first:A,B,...", "the first of these drafters that has a draft", false, nullptr,
     read_first_drafter, ','},
    {"merge", "merge:A+B+...", "the trees of these drafters united", false, nullptr,
     read_merge_drafter, '+'},
    {"relay", "relay:A+B+...", "the first of these drafters, and behind its tokens the next", false,
     nullptr, read_relay_drafter, '+'},
    {"staged", "staged:model:PATH+B",
     "a small model, its weights=W as above, that the drafter B drafts for", true, nullptr,
     read_staged_drafter, '+'},
    {"cascade", "cascade:RULE+model:PATH+B",
     "what a small model lets stand of the drafter B's by a rule of their own", true, nullptr,
     read_cascade_drafter, '+'},
    {"spoiled", "spoiled:tokens[:from=N,to=M]+A",
     "the drafter A with other tokens in the place of its own, from the text's new token N on up "
     "to "
     "M: what a bad drafter costs",
     false, nullptr, read_spoiled_drafter, '+'},
};

}  // namespace

std::span<const DrafterKind> drafter_kinds() { return kKinds; }

DrafterPlan read_drafter(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  const auto* const kind =
      std::find_if(std::begin(kKinds), std::end(kKinds),
                   [&](const DrafterKind& known) { return known.name == name; });
  if (kind == std::end(kKinds)) {
    std::vector<std::string_view> names = {"none"};  // what a user may write in a drafter's place
    for (const DrafterKind& known : kKinds) names.push_back(known.name);
    Spec::parse("drafter", name).require_name(names);
    throw UsageError("read drafter", std::string(spec), "a drafter", "none as a part of another");
  }
  if (kind->read != nullptr) return kind->read(Spec::parse("drafter", spec));
  const std::vector<std::string> parts =
      split_specs(spec.substr(std::min(spec.size(), name.size() + 1)), kind->joined_by);
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    throw UsageError("read drafter", spec, "a drafter as every part", "an empty one");
  }
  return kind->read_parts(parts);
}

}  // namespace outrider
