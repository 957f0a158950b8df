// SPDX-License-Identifier: Apache-2.0
// outrider train seq2seq: an encoder-decoder that maps texts to texts, from pairs of lines.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/trainer/answer_score.h"
#include "apps/trainer/run_flags.h"
#include "apps/trainer/seq2seq_shape.h"
#include "apps/trainer/train_commands.h"
#include "base/files/atomic_file.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tokenizer/same_vocabulary.h"
#include "train/batches/answer_batches.h"
#include "train/objectives/seq2seq.h"

namespace outrider::cli {
namespace {

constexpr const char* kOperation = "read flags";
// A batch's logits in f32: 1 GiB. The loss holds them three times: itself, the gradient, and a
// temporary.
constexpr std::int64_t kMaxLogits = std::int64_t{1} << 28;

// Two files with corresponding lines; both or neither.
struct PairFiles {
  std::string source;
  std::string target;
  bool is_given() const { return !source.empty(); }
};

struct Seq2SeqFlags {
  RunFlags run;
  PairFiles text;
  PairFiles held_out;
  PairFiles test;
  std::string tokenizer;
  Seq2SeqShapeFlags shape;
  std::string teacher;
  std::string divergence = "forward-kl";
  double dropout = 0;
  double label_smoothing = 0;
};

void require_both(const PairFiles& files, const char* source, const char* target) {
  if (files.source.empty() == files.target.empty()) return;
  throw UsageError(kOperation, files.source.empty() ? source : target,
                   fmt::format("a file, as {} has", files.source.empty() ? target : source),
                   "none");
}

void require_logits_fit(const train::T5Config& config, const RunFlags& flags) {
  const std::int64_t n_places = std::int64_t{flags.batch} * flags.length;
  if (config.vocabulary_size <= kMaxLogits / n_places) return;
  throw UsageError(kOperation, "vocabulary",
                   fmt::format("at most {} tokens with --batch {} and --length {}",
                               kMaxLogits / n_places, flags.batch, flags.length),
                   fmt::format("{}", config.vocabulary_size));
}

std::shared_ptr<train::PairSource> pairs_of(const PairFiles& files, const Tokenizer& tokenizer,
                                            const train::BatchShape& shape, TokenId padding) {
  if (!files.is_given()) return nullptr;
  return std::make_shared<train::PairSource>(
      train::read_pairs(files.source, files.target, tokenizer), shape, padding, files.source);
}

train::RunSettings settings_of(const Seq2SeqFlags& flags, const train::PairSource& pairs,
                               const train::T5Config& config) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  return {{"command", "seq2seq"},
          {"source", flags.text.source},
          {"target", flags.text.target},
          {"tokens", fmt::format("{} ({:016x})", pairs.n_tokens(), pairs.fingerprint())},
          {"tokenizer", flags.tokenizer},
          {"init", flags.shape.init},
          {"teacher", flags.teacher},
          {"divergence", flags.divergence},
          {"dropout", number(flags.dropout)},
          {"label-smoothing", number(flags.label_smoothing)},
          {"layers", number(config.n_encoder_layers)},
          {"decoder-layers", number(flags.shape.decoder_layers)},
          {"dim", number(config.dim)},
          {"heads", number(config.n_heads)},
          {"head-dim", number(config.head_dim)},
          {"hidden", number(config.hidden_dim)}};
}

// The test texts, read before the run so that their errors show at once.
struct TestTexts {
  std::vector<std::vector<TokenId>> sources;
  std::vector<std::string> references;
};

TestTexts read_test(const PairFiles& files, const Tokenizer& tokenizer, int n_heads) {
  TestTexts test;
  if (!files.is_given()) return test;
  for (train::SentencePair& pair : train::read_pairs(files.source, files.target, tokenizer)) {
    test.sources.push_back(std::move(pair.source));
    if (test.sources.back().size() <= train::longest_answered(n_heads)) continue;
    throw Error("read pairs", fmt::format("{} line {}", files.source, test.sources.size()),
                fmt::format("at most {} tokens, to be answered with {} heads",
                            train::longest_answered(n_heads), n_heads),
                fmt::format("{}", test.sources.back().size()));
  }
  test.references = train::read_sentences(files.target);
  return test;
}

void report_test(const train::Seq2Seq& seq2seq, const TestTexts& test, const Tokenizer& tokenizer,
                 const RunFlags& flags) {
  std::vector<std::string> answers;
  {
    StateLine state;
    state.show(fmt::format("answering {} texts", test.sources.size()));
    for (const std::vector<TokenId>& said : seq2seq.answer(test.sources, flags.length)) {
      answers.push_back(one_line(tokenizer.decode(said)));
    }
  }
  std::string lines;
  for (const std::string& answer : answers) lines += answer + "\n";
  const std::filesystem::path file =
      std::filesystem::path(flags.out) / "training" / "test_answers.txt";
  write_file_atomically(file, lines);
  const AnswerScore score = score_answers(answers, test.references);
  Output output;
  output.write(fmt::format("BLEU {:.2f} [{:.2f}, {:.2f}] of {} ({})\n", score.bleu,
                           score.interval.low, score.interval.high,
                           counted(static_cast<std::int64_t>(answers.size()), "text"),
                           score.signature));
  output.check();
}

// The number of pairs, and the number that are too long and left out.
std::string summary_of(const train::PairSource& pairs, int length) {
  std::string words =
      fmt::format("{} of {} tokens", counted(pairs.n_pairs(), "pair"), pairs.n_tokens());
  if (pairs.n_left_out() > 0) {
    words +=
        fmt::format(" ({} left out: a text longer than {} tokens)", pairs.n_left_out(), length);
  }
  return words;
}

int run_seq2seq(const Seq2SeqFlags& flags) {
  require_both(flags.held_out, "held-out-source", "held-out-target");
  require_both(flags.test, "test-source", "test-target");
  if (!flags.teacher.empty()) {
    require_apart(flags.run, flags.teacher);
    if (flags.label_smoothing > 0) {
      throw UsageError(kOperation, "label-smoothing",
                       "0 with --teacher, which says the whole distribution",
                       fmt::format("{}", flags.label_smoothing));
    }
  }
  set_up_training(flags.run);
  const auto tokenizer = load_tokenizer(flags.tokenizer);
  if (!flags.teacher.empty()) {
    require_same_vocabulary(*load_tokenizer(flags.teacher), *tokenizer, "read tokenizer",
                            flags.tokenizer);
  }
  train::Seq2SeqOptions options;
  options.config = config_of(flags.shape, flags.teacher, *tokenizer);
  require_logits_fit(options.config, flags.run);
  options.products = products_of(flags.run);
  options.init = flags.shape.init;
  options.seed = flags.run.seed;
  options.dropout = flags.dropout;
  options.label_smoothing = flags.label_smoothing;
  options.teacher = flags.teacher;
  options.divergence = divergence_of(flags.divergence);
  options.batches =
      pairs_of(flags.text, *tokenizer, batch_shape(flags.run), options.config.padding);
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same batches in every run
  options.held_out = pairs_of(flags.held_out, *tokenizer, held_out, options.config.padding);
  options.tokenizer = flags.tokenizer;
  options.excluded_tokens = rows_without_token(*tokenizer, options.config.vocabulary_size);
  options.export_type = export_type_of(flags.run);
  const TestTexts test = read_test(flags.test, *tokenizer, options.config.n_heads);

  const train::Seq2Seq seq2seq = train::make_seq2seq(options);
  std::string summary =
      fmt::format("{} parameters, {}", train::n_trained_parameters(*seq2seq.objective),
                  summary_of(*options.batches, flags.run.length));
  if (options.held_out != nullptr) {
    summary += "; held out " + summary_of(*options.held_out, flags.run.length);
  }
  const int status =
      run_with_progress(*seq2seq.objective, flags.run,
                        settings_of(flags, *options.batches, options.config), std::move(summary));
  if (status == 0 && !test.sources.empty()) report_test(seq2seq, test, *tokenizer, flags.run);
  return status;
}

void add_pair_files(CLI::App& command, PairFiles& files, const std::string& prefix,
                    const std::string& source, const std::string& target, bool is_required) {
  constexpr const char* kData = "Data";
  CLI::Option* of_source = add_path(command, prefix + "source", files.source, "FILE", source);
  CLI::Option* of_target = add_path(command, prefix + "target", files.target, "FILE", target);
  for (CLI::Option* option : {of_source, of_target}) option->group(kData)->required(is_required);
}

}  // namespace

CLI::App* add_train_seq2seq(CLI::App& program, Run& run) {
  auto flags = std::make_shared<Seq2SeqFlags>();
  flags->run.batch = 64;
  flags->run.length = 128;
  flags->run.steps = 5000;
  CLI::App* command = program.add_subcommand(
      "seq2seq",
      "Train an encoder-decoder of the T5 v1.1 kind from two files of lines, a text and what is to "
      "be said for it: translation, for example");
  add_pair_files(*command, flags->text, "--", "File of texts to read, a line each",
                 "File of texts to say for them, line by line", true);
  add_pair_files(*command, flags->held_out, "--held-out-", "The same, to report the loss on",
                 "What to say for these", false);
  add_pair_files(*command, flags->test, "--test-",
                 "The same, to be answered when all is learnt, each by its likeliest tokens, "
                 "--length of them at most; the answers stand in training/test_answers.txt",
                 "What to say for these: corpus BLEU is printed, with its 95% interval", false);
  add_path(*command, "--tokenizer", flags->tokenizer, "PATH",
           "Whose vocabulary: a Hugging Face directory or a tokenizer.json. For both sides; it is "
           "copied to --out")
      ->required()
      ->group("Data");
  add_seq2seq_shape(*command, flags->shape);
  constexpr const char* kTeacher = "Distillation";
  add_path(*command, "--teacher", flags->teacher, "DIR",
           "Learn what this model says instead of the tokens. It is of the same kind and "
           "vocabulary, and says it behind the targets' tokens")
      ->group(kTeacher);
  add_divergence(*command, flags->divergence, kTeacher);
  add_run_flags(*command, flags->run, "--held-out-source");
  constexpr RealRange kShare{0, true, 1, false, "a number in [0, 1)"};
  constexpr const char* kOptimiser = "Optimiser (AdamW)";
  add_real(*command, "--dropout", flags->dropout, kShare,
           "Share that is left out at random (default: 0). Of the embeddings, of what layers add "
           "and stacks give, and of the activations of the feed-forward layers; for texts that are "
           "read many times")
      ->group(kOptimiser);
  add_real(*command, "--label-smoothing", flags->label_smoothing, kShare,
           "Share of each token's distribution that is spread over the vocabulary (default: 0)")
      ->group(kOptimiser);
  show_usual(*command, {"--source", "--target", "--held-out-source", "--held-out-target",
                        "--tokenizer", "--layers", "--dim", "--init", "--teacher", "--dropout"});
  command->footer(
      "Examples:\n"
      "  outrider train seq2seq --source train.de --target train.en --tokenizer tokenizer \\\n"
      "      --held-out-source val.de --held-out-target val.en --evaluate-every 500 \\\n"
      "      --dropout 0.1 --out de-en\n"
      "  outrider train seq2seq ... --layers 6 --dim 256 --head-dim 64 --hidden 704 --out large\n"
      "  outrider train seq2seq ... --teacher large --out small\n"
      "  outrider train seq2seq ... --resume\n");
  run = [flags] { return run_seq2seq(*flags); };
  return command;
}

}  // namespace outrider::cli
