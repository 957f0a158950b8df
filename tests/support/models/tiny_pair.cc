// SPDX-License-Identifier: Apache-2.0
#include "tests/support/models/tiny_pair.h"

#include <fstream>

namespace outrider::test {

TinyPair make_tiny_pair() {
  TinyShape shape;
  shape.seed = 20;
  shape.vocabulary_size = 384;
  shape.context_length = 1024;
  shape.n_layers = 2;
  TinyPair pair;
  pair.target = make_tiny_model(shape);
  pair.draft = with_noise(pair.target, 0.3F, 21);
  return pair;
}

void write_tiny_pair(const std::filesystem::path& directory) {
  const TinyPair pair = make_tiny_pair();
  write_hugging_face(pair.target, directory / "target");
  write_hugging_face(pair.draft, directory / "draft");
}

void write_tiny_texts(const std::filesystem::path& file) {
  std::ofstream text(file);
  for (int number = 0; number < 30; ++number) {
    text << "This is text number " << number * number << ".|";
  }
}

}  // namespace outrider::test
