// The flags that name text to read.
#ifndef OUTRIDER_APPS_TEXT_FLAGS_H_
#define OUTRIDER_APPS_TEXT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "outrider/tune.h"

namespace outrider::cli {

// --text, required: files and folders.
void add_text_paths(CLI::App& app, std::vector<std::filesystem::path>& texts,
                    const std::string& group);

// That and the other flags of texts whose beginnings are continued, in a group of their own, and
// what their continuations are sampled with. Defaults are those of `texts` as it is given.
void add_continued_texts(CLI::App& app, ContinuedTexts& texts, int least_tokens);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TEXT_FLAGS_H_
