// Renders templates for tools/compare_templates.py: each line of standard input is a JSON object
// with "template" and "context" (an object), each line of the output one with "output" or "error".
#include <ctime>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "outrider/chat_template.h"

int main() {
  // 26 July 2024, a Friday: what compare_templates.py has for today.
  const outrider::TemplateClock clock = [] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mon = 6;
    time.tm_mday = 26;
    time.tm_hour = 14;
    time.tm_min = 5;
    time.tm_sec = 9;
    time.tm_wday = 5;
    time.tm_yday = 207;
    return time;
  };
  std::string line;
  while (std::getline(std::cin, line)) {
    nlohmann::ordered_json answer;
    try {
      const auto asked = nlohmann::ordered_json::parse(line);
      const outrider::ChatTemplate chat_template(asked["template"].get<std::string>());
      answer["output"] = chat_template.render(asked["context"].dump(), clock);
    } catch (const std::exception& error) {
      answer["error"] = error.what();
    }
    std::cout << answer.dump() << "\n";
  }
  return 0;
}
