// SPDX-License-Identifier: Apache-2.0
#include <outrider/generate.h>

#include <iostream>

int main(int, char** arguments) {
  auto model = outrider::Model::load(arguments[1]);
  outrider::Generator generator(model, {.drafter = std::string("model:") + arguments[2]});
  auto result = generator.generate("Hello", {.max_tokens = 8, .ignore_eos = true});
  std::cout << result.text << '\n';
  return result.ids.size() == 8 ? 0 : 1;
}
