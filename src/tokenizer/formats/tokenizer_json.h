// SPDX-License-Identifier: Apache-2.0
// Reader for Hugging Face's tokenizer.json.
#ifndef OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_JSON_H_
#define OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_JSON_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats/json_view.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

// The parts described by a tokenizer.json; `description` names it in errors. Throws Error if it is
// malformed or uses an unsupported component. Supported are
//   model           BPE (no dropout) Unigram
//   normalizer      Sequence Prepend Replace NFC NFD NFKC NFKD Lowercase Strip StripAccents
//                   ByteLevel Precompiled Nmt
//   pre_tokenizer   Sequence ByteLevel Split Metaspace Digits Whitespace WhitespaceSplit
//                   Punctuation CharDelimiterSplit
//   post_processor  Sequence TemplateProcessing ByteLevel BertProcessing RobertaProcessing
//   decoder         Sequence ByteLevel Replace ByteFallback Fuse Strip Metaspace BPEDecoder
// Truncation and padding are ignored: they are for training batches. more: added tokens from
// another file; those whose content is already present are skipped.
TokenizerParts parse_tokenizer_json(std::string_view bytes, const std::string& description,
                                    std::span<const AddedToken> more = {});
// The "added_tokens_decoder" of a tokenizer_config.json; empty without one.
std::vector<AddedToken> read_added_tokens_decoder(const JsonView& config);

// Readers of components, each in a separate file of this folder.
Normalizer read_normalizer(const JsonView& json);  // null: none
PreTokenizer read_pre_tokenizer(const JsonView& json);
Decoder read_decoder(const JsonView& json);
Surroundings read_post_processor(const JsonView& json, const Vocabulary& vocabulary);
// {"String": "a"} or {"Regex": "a+"}
Pattern read_pattern(const JsonView& json);
// The "type" of a component.
const std::string& component_type(const JsonView& json);
[[noreturn]] void refuse_component(const JsonView& json, std::string_view kind,
                                   std::string_view known);

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_JSON_H_
