// SPDX-License-Identifier: Apache-2.0
// Drafters written in Python: objects with propose() and, optionally, begin(), observe() and end().
#include "own_drafter.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider::python {
namespace {

// A text as Python sees it: a copy, which Python may keep.
struct TextOfDrafter {
  std::int64_t id = 0;
  py::array_t<TokenId> tokens;
};

TextOfDrafter to_python(const OwnText& text) { return {text.id, to_array(text.tokens)}; }

// The numbers of a distribution, and the TokenDistribution that refers to them.
struct HeldDistribution {
  py::array_t<TokenId> ids;
  py::array_t<double> probs;
  TokenDistribution view() const {
    return {.ids = {ids.data(), static_cast<std::size_t>(ids.size())},
            .probs = {probs.data(), static_cast<std::size_t>(probs.size())}};
  }
};

py::array_t<double> read_probs(const py::handle& object) {
  using Probs = py::array_t<double, py::array::c_style | py::array::forcecast>;
  const Probs probs(py::reinterpret_borrow<py::object>(object));  // its exceptions propagate
  if (probs.ndim() != 1) {
    throw UsageError("own drafter", "distribution", "probabilities of one dimension",
                     std::to_string(probs.ndim()) + " dimensions");
  }
  return probs;
}

// (ids, probs), or an array of the probabilities of all tokens.
HeldDistribution read_distribution(const py::handle& object) {
  if (py::isinstance<py::tuple>(object) || py::isinstance<py::list>(object)) {
    const auto pair = py::reinterpret_borrow<py::sequence>(object);
    if (pair.size() != 2) {
      throw UsageError("own drafter", "distribution", "(ids, probs), or an array of probabilities",
                       "a list of " + std::to_string(pair.size()));
    }
    return {to_array(read_ids(py::object(pair[0]))), read_probs(py::object(pair[1]))};
  }
  const py::array_t<double> all = read_probs(object);
  std::vector<TokenId> ids;
  std::vector<double> probs;
  for (py::ssize_t id = 0; id < all.size(); ++id) {
    if (all.at(id) == 0) continue;
    ids.push_back(static_cast<TokenId>(id));
    probs.push_back(all.at(id));
  }
  return {to_array(std::move(ids)), to_array(std::move(probs))};
}

// A draft in progress; valid only during the call of propose() that got it.
class DraftOfCall {
 public:
  explicit DraftOfCall(OwnDraft& draft) : draft_(&draft) {}
  void close() { draft_ = nullptr; }
  OwnDraft& get() const {
    if (draft_ == nullptr) {
      throw UsageError("own drafter", "draft", "the draft of this call of propose()",
                       "one whose call is over");
    }
    return *draft_;
  }

 private:
  OwnDraft* draft_;
};

int add(const DraftOfCall& self, int parent, TokenId token, const py::object& dist) {
  if (dist.is_none()) return self.get().add(parent, token);
  return self.get().add(parent, token, read_distribution(dist).view());
}

py::tuple draw(const DraftOfCall& self, int parent, const py::object& dist) {
  const OwnDraft::Drawn drawn = self.get().draw(parent, read_distribution(dist).view());
  return py::make_tuple(drawn.node, drawn.token);
}

// The value that propose() returned: None, or ids to add as a chain.
void add_chain(OwnDraft& draft, const py::object& returned) {
  if (returned.is_none()) return;
  int node = -1;
  for (const TokenId token : read_ids(returned)) node = draft.add(node, token);
}

class PythonDrafter final : public OwnDrafter {
 public:
  explicit PythonDrafter(const py::object& object) : object_(hold(object)) {}

  void begin(const OwnText& text) override {
    const TakenGil taken;
    if (has("begin")) call(method("begin"), to_python(text));
  }

  void propose(const OwnText& text, OwnDraft& draft) override {
    const TakenGil taken;
    const auto shown = std::make_shared<DraftOfCall>(draft);
    py::object returned;
    try {
      returned = call(method("propose"), to_python(text), shown);
    } catch (...) {
      shown->close();
      throw;
    }
    shown->close();
    add_chain(draft, returned);
  }

  void observe(const OwnText& text, std::span<const int> accepted) override {
    const TakenGil taken;
    if (has("observe")) call(method("observe"), to_python(text), to_array(accepted));
  }

  // There is no caller to report to: an error goes to sys.unraisablehook, as one of a destructor.
  void end(std::int64_t id) noexcept override {
    const TakenGil taken;
    try {
      if (has("end")) call(method("end"), id);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("a drafter's end()");
    } catch (const std::exception&) {  // not enough memory for the call
    }
  }

 private:
  py::handle object() const { return object_.get(); }
  bool has(const char* name) const { return py::hasattr(object(), name); }
  py::object method(const char* name) const { return object().attr(name); }

  HeldObject object_;
};

}  // namespace

std::shared_ptr<OwnDrafter> to_own_drafter(const py::object& object) {
  const bool proposes = py::hasattr(object, "propose") &&
                        PyCallable_Check(py::object(object.attr("propose")).ptr()) != 0;
  if (!proposes || PyType_Check(object.ptr()) != 0) {
    throw py::type_error("drafter: a spec, or an object with a method propose(text, draft), not " +
                         std::string(py::str(py::type::of(object))));
  }
  return std::make_shared<PythonDrafter>(object);
}

void bind_own_drafter(py::module_& module) {
  py::class_<TextOfDrafter>(module, "DraftedText", "A text for which a drafter proposes tokens.")
      .def_readonly("id", &TextOfDrafter::id,
                    "Id of the text, unique among all texts of the process.")
      .def_readonly("tokens", &TextOfDrafter::tokens,
                    "Ids of the prompt and of all tokens generated so far: int32 array (n >= 1).");
  py::class_<DraftOfCall, std::shared_ptr<DraftOfCall>>(
      module, "Draft",
      "One round's draft of a text: a tree of tokens. Node i is the i-th token added, from 0; node "
      "-1 is the text's last token. A draft is valid during one call of propose(). An invalid "
      "addition raises Error and leaves the draft unchanged.")
      .def_property_readonly(
          "max_depth", [](const DraftOfCall& self) { return self.get().max_depth(); },
          "Maximum depth of a node, at least 1. A child of node -1 has depth 1.")
      .def_property_readonly(
          "max_nodes", [](const DraftOfCall& self) { return self.get().max_nodes(); },
          "Maximum number of nodes, at least 1.")
      .def_property_readonly(
          "is_chain", [](const DraftOfCall& self) { return self.get().is_chain(); },
          "Whether each node but the first must be the child of the node before it.")
      .def_property_readonly(
          "vocabulary_size", [](const DraftOfCall& self) { return self.get().vocabulary_size(); },
          "Upper bound of token ids: all are below this number.")
      .def("__len__", [](const DraftOfCall& self) { return self.get().n_nodes(); })
      .def("add", &add, py::arg("parent"), py::arg("token"), py::arg("distribution") = py::none(),
           "Adds a token as a child of the node `parent` and returns its node. Without a "
           "distribution, the token counts as chosen deterministically. With one, the drafter drew "
           "it from that distribution with its own random numbers.\n\n"
           "distribution: (ids, probs), or an array of the probabilities of all tokens. It must be "
           "the distribution of the draw given all nodes before it, and every drawn token must be "
           "added. The engine cannot check this. If it does not hold, sampled texts follow another "
           "distribution.")
      .def("draw", &draw, py::arg("parent"), py::arg("distribution"),
           "Draws a token from the distribution with the request's seed, and adds it. Returns "
           "(node, token).");
}

}  // namespace outrider::python
