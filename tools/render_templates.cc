// SPDX-License-Identifier: Apache-2.0
// Renders templates for tools/compare_templates.py. Each input line is a JSON object with
// "template" and "context" (an object); each output line is one with "output" or "error".
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "outrider/chat_template.h"
#include "tests/support/goldens/golden_time.h"

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::ordered_json answer;
    try {
      const auto asked = nlohmann::ordered_json::parse(line);
      const outrider::ChatTemplate chat_template(asked["template"].get<std::string>());
      answer["output"] = chat_template.render(asked["context"].dump(), outrider::test::golden_time);
    } catch (const std::exception& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << "\n";
  }
  return 0;
}
