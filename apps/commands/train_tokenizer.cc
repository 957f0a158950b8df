// SPDX-License-Identifier: Apache-2.0
// outrider train tokenizer: learns a vocabulary from text and writes a Hugging Face directory.
#include "apps/commands/train_tokenizer.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "outrider/error.h"
#include "vocabulary_training/train_vocabulary.h"

namespace outrider::cli {
namespace {

// <unk>, <s>, </s>, the 256 bytes, and the blank with which every text begins.
constexpr int kMinVocabulary = 260;

struct TrainTokenizerFlags {
  std::vector<std::string> texts;
  int vocabulary = 0;
  std::string out;
  double coverage = 0.99995;  // Llama 2's value
  int max_lines = 0;
  std::uint64_t seed = 0;
  bool keep_model = false;
  bool force = false;
};

// Delays signals that end the program during its lifetime: work of milliseconds is done completely
// or not begun.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t ending;
    ::sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsWait() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

int run(const TrainTokenizerFlags& flags) {
  require_sentencepiece();
  const VocabularyDirectory directory(flags.out,
                                      {.overwrite = flags.force, .keep_model = flags.keep_model});
  StateLine state;
  state.show("reading text");
  const TrainingText text({flags.texts.begin(), flags.texts.end()});
  LineSample lines(text, flags.max_lines, flags.seed);
  const std::string source = lines.n_lines() == text.n_lines()
                                 ? fmt::format("{} lines", lines.n_lines())
                                 : fmt::format("{} of {} lines", lines.n_lines(), text.n_lines());
  state.show(fmt::format("learning {} pieces from {} ({:.1f} MiB of text)", flags.vocabulary,
                         source, static_cast<double>(text.n_bytes()) / (1 << 20)));
  // SentencePiece cannot be stopped. Nothing is written yet, so Ctrl-C may end the program.
  const TrainedVocabulary vocabulary = train_vocabulary(
      lines, {.vocabulary_size = flags.vocabulary, .character_coverage = flags.coverage});
  {
    const SignalsWait signals_wait;
    directory.write(vocabulary);
  }
  Output output;
  output.write(
      fmt::format("{}: {} pieces from {}: {} merged, {} characters, 256 bytes, 3 special\n",
                  one_line(flags.out), vocabulary.n_pieces, source, vocabulary.n_merged,
                  vocabulary.n_characters));
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_train_tokenizer(CLI::App& train, Run& run_command) {
  CLI::App* app = train
                      .add_subcommand("tokenizer",
                                      "A vocabulary, from text (SentencePiece's BPE "
                                      "with byte fallback, as tokenizer.json)")
                      ->group("In this program");
  const auto flags = std::make_shared<TrainTokenizerFlags>();
  constexpr const char* kFiles = "Files";
  app->add_option_function<std::vector<std::string>>(
         "--text",
         [flags](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             if (text.empty()) throw UsageError("read flags", "--text", "a path", "an empty text");
           }
           flags->texts = texts;
         },
         "A file of UTF-8 text, read line by line; may be given several times (required)")
      ->type_name("FILE")
      ->expected(1)
      ->take_all()
      ->group(kFiles)
      ->required();
  add_path(*app, "--out", flags->out, "DIR",
           "Where to: gets tokenizer.json and tokenizer_config.json; made if it is not there "
           "(required)")
      ->group(kFiles)
      ->required();
  app->add_flag("--keep-model", flags->keep_model, "Write SentencePiece's tokenizer.model, too")
      ->group(kFiles);
  app->add_flag("--force", flags->force, "Replace a tokenizer that is there (default: refuse to)")
      ->group(kFiles);

  constexpr const char* kVocabulary = "Vocabulary";
  add_integer(*app, "--vocabulary", flags->vocabulary, kMinVocabulary,
              "How many pieces, 3 special ones, 256 bytes and all characters among them (required)")
      ->group(kVocabulary)
      ->required();
  add_real(*app, "--coverage", flags->coverage, {0.98, true, 1, true, "a number in [0.98, 1]"},
           "Share of the text's characters that get pieces of their own, the frequent first; "
           "others are spelt in bytes (default: 0.99995)")
      ->group(kVocabulary);
  CLI::Option* max_lines =
      add_integer(*app, "--max-lines", flags->max_lines, 1,
                  "Learn from this many lines, drawn at random (default: all; memory takes "
                  "several times the text)")
          ->group(kVocabulary);
  add_seed(*app, "--seed", flags->seed, "Which lines are drawn (default: 0)")
      ->group(kVocabulary)
      ->needs(max_lines);
  app->footer(
      "The same text and flags give the same files, byte for byte.\n\n"
      "Examples:\n"
      "  outrider train tokenizer --text stories.txt --vocabulary 4096 --out tokenizer\n"
      "  outrider train tokenizer --text a.txt --text b.txt --vocabulary 32000 --out tokenizer \\\n"
      "      --max-lines 1000000 --keep-model\n"
      "  outrider tokenize --model tokenizer --text \"Once upon a time\"\n");
  run_command = [flags] { return run(*flags); };
  return app;
}

}  // namespace outrider::cli
