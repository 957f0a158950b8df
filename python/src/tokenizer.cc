// SPDX-License-Identifier: Apache-2.0
// outrider.Tokenizer.
#include "outrider/tokenizer.h"

#include <optional>

#include "bindings.h"
#include "outrider/chat.h"

namespace outrider::python {
namespace {

std::string render(const Tokenizer& tokenizer, const py::object& messages, const py::object& tools,
                   bool add_generation_prompt, const py::object& variables) {
  const std::string conversation = to_json(messages);
  const ChatOptions options{.add_generation_prompt = add_generation_prompt,
                            .tools = to_json(tools),
                            .variables = to_json(variables)};
  const ReleasedGil released;
  const ChatTemplate chat_template = chat_template_of(tokenizer, !options.tools.empty());
  return render_chat_json(chat_template, tokenizer, conversation, MessageGuard::none, options).text;
}

}  // namespace

void bind_tokenizer(py::module_& module) {
  py::class_<Tokenizer, std::shared_ptr<Tokenizer>>(
      module, "Tokenizer",
      "Converts text to token ids and back. Immutable; any number of threads may use it.")
      .def_static(
          "load",
          [](const py::object& path) {
            const std::filesystem::path file = read_path(path, "load tokenizer");
            const ReleasedGil released;
            // No bound function changes it.
            return std::const_pointer_cast<Tokenizer>(Tokenizer::load(file));
          },
          py::arg("path"),
          "Loads a tokenizer. path: a Hugging Face folder, a tokenizer.json, a SentencePiece model "
          "or a GGUF file.")
      .def(
          "encode",
          [](const Tokenizer& self, const py::str& words, bool add_special) {
            const std::string text = read_text(words, "encode", "text");
            check_signals();
            std::vector<TokenId> ids;
            {
              const ReleasedGil released;
              ids = self.encode(text, add_special);
            }
            return to_array(std::move(ids));
          },
          py::arg("text"), py::arg("add_special") = true,
          "Returns the token ids of a text: int32 array (n). With add_special they include the "
          "special tokens that the model's files put around a text. Special tokens spelled in the "
          "text are recognised either way.")
      .def(
          "decode",
          [](const Tokenizer& self, const py::object& ids, bool keep_special) {
            return self.decode(read_ids(ids), keep_special);
          },
          py::arg("ids"), py::arg("keep_special") = false,
          "Returns the text of token ids. Special tokens are left out unless keep_special is True.")
      .def(
          "piece",
          [](const Tokenizer& self, TokenId id) {
            return py::bytes(std::string(self.piece(id))).attr("decode")("utf-8", "replace");
          },
          py::arg("id"), "Returns the spelling of a token in the vocabulary file.")
      .def(
          "find",
          [](const Tokenizer& self, const py::str& piece) {
            return self.find(read_text(piece, "find token", "piece"));
          },
          py::arg("piece"),
          "Returns the id of the token with this spelling in the vocabulary file, or None.")
      .def(
          "bytes", [](const Tokenizer& self, TokenId id) { return py::bytes(self.bytes(id)); },
          py::arg("id"),
          "Returns the bytes that a token adds within a text; none for special tokens.")
      .def("is_special", by_reference<&Tokenizer::is_special>, py::arg("id"))
      .def("chat_template", &render, py::arg("messages"), py::arg("tools") = py::none(),
           py::arg("add_generation_prompt") = true, py::arg("variables") = py::none(),
           "Returns the prompt of a conversation by the model's chat template: a text with special "
           "tokens spelled out. Encode it with add_special=False.\n\n"
           "messages: a list of dicts with role, content and all else that the template reads. "
           "tools: a list of dicts, the functions that the model may call. variables: a dict of "
           "further variables of the template.")
      .def_property_readonly("vocabulary_size", by_reference<&Tokenizer::vocabulary_size>,
                             "Upper bound of token ids: all are below this number. A model may "
                             "have more logits than tokens.")
      .def_property_readonly("bos_token", by_reference<&Tokenizer::bos_token>,
                             "Id of the beginning-of-sequence token; -1: the files name none.")
      .def_property_readonly("eos_token", by_reference<&Tokenizer::eos_token>,
                             "Id of the end-of-sequence token; -1: the files name none.")
      .def_property_readonly("warnings", by_reference<&Tokenizer::warnings>,
                             "Doubtful points of the tokenizer's files that did not stop loading.");
}

}  // namespace outrider::python
