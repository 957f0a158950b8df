// SPDX-License-Identifier: Apache-2.0
// Flags for the texts to read.
#ifndef OUTRIDER_APPS_FLAGS_TEXT_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_TEXT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "outrider/tune.h"

namespace outrider::cli {

// --text, required: files and folders.
void add_text_paths(CLI::App& app, std::vector<std::filesystem::path>& texts,
                    const std::string& group);

// --text and the other flags of texts whose beginnings are continued, in a separate group, and the
// sampling options of the continuations. The defaults are the values of `texts`.
void add_continued_texts(CLI::App& app, ContinuedTexts& texts, int min_tokens);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_TEXT_FLAGS_H_
