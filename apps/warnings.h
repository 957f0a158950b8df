// What is doubtful about files and was read all the same, told on standard error.
#ifndef OUTRIDER_APPS_WARNINGS_H_
#define OUTRIDER_APPS_WARNINGS_H_

#include <memory>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider::cli {

// "outrider: warning: ..." for each, a line each.
void print_warnings(const std::vector<std::string>& warnings);

// Tokenizer::load, with its warnings printed.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_WARNINGS_H_
