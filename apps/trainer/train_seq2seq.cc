// outrider train seq2seq: an encoder-decoder that says one text for another, from pairs of lines.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "flag_values.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "state_line.h"
#include "terminal.h"
#include "tokenizer/same_vocabulary.h"
#include "train/objectives/seq2seq.h"
#include "trainer/answer_score.h"
#include "trainer/run_flags.h"
#include "trainer/train_commands.h"
#include "warnings.h"

namespace outrider::cli {
namespace {

constexpr const char* kOperation = "read flags";
// Of a batch's logits, f32: 1 GiB. The loss holds them three times, as such, as the gradient and
// while it is computed.
constexpr std::int64_t kMostLogits = std::int64_t{1} << 28;

// Two files of lines that belong together; both or neither.
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
  std::string init;
  std::string teacher;
  std::string divergence = "forward-kl";
  double dropout = 0;
  double label_smoothing = 0;
  int layers = 4;
  int decoder_layers = 0;  // 0: as many as layers
  int dim = 64;
  int heads = 4;
  int head_dim = 32;
  int hidden = 256;
};

void require_both(const PairFiles& files, const char* source, const char* target) {
  if (files.source.empty() == files.target.empty()) return;
  throw UsageError(kOperation, files.source.empty() ? source : target,
                   fmt::format("a file, as {} has", files.source.empty() ? target : source),
                   "none");
}

// What stands behind the shorter texts of a batch, and before every answer: no text holds it where
// each byte has a token.
TokenId padding_of(const Tokenizer& tokenizer) {
  const auto named = nlohmann::json::parse(tokenizer.special_tokens());
  for (const char* name : {"pad_token", "unk_token"}) {
    if (!named.contains(name) || !named[name].is_string()) continue;
    const std::optional<TokenId> id = tokenizer.find(named[name].get<std::string>());
    if (id) return *id;
  }
  if (tokenizer.bos_token() != kNoToken) return tokenizer.bos_token();
  throw Error("train seq2seq", "tokenizer",
              "one that names a token for padding (pad_token, unk_token or bos_token)", "none");
}

train::T5Config config_of(const Seq2SeqFlags& flags, const Tokenizer& tokenizer) {
  train::T5Config config;
  config.vocabulary_size = tokenizer.vocabulary_size();
  config.padding = padding_of(tokenizer);
  config.start = config.padding;
  config.end = tokenizer.eos_token();
  if (!flags.teacher.empty()) {
    // Some models pad their matrices beyond the vocabulary; what learns from them has the same
    // rows.
    const train::T5Config teacher = train::read_t5_config(flags.teacher);
    config.vocabulary_size = teacher.vocabulary_size;
    config.padding = teacher.padding;
    config.start = teacher.start;
    config.end = teacher.end;
  }
  config.dim = flags.dim;
  config.n_heads = flags.heads;
  config.head_dim = flags.head_dim;
  config.hidden_dim = flags.hidden;
  config.n_encoder_layers = flags.layers;
  config.n_decoder_layers = flags.decoder_layers > 0 ? flags.decoder_layers : flags.layers;
  const std::int64_t n_places = std::int64_t{flags.run.batch} * flags.run.length;
  if (config.vocabulary_size > kMostLogits / n_places) {
    throw UsageError(kOperation, "vocabulary",
                     fmt::format("at most {} tokens with --batch {} and --length {}",
                                 kMostLogits / n_places, flags.run.batch, flags.run.length),
                     fmt::format("{}", config.vocabulary_size));
  }
  return config;
}

std::shared_ptr<train::PairSource> pairs_of(const PairFiles& files, const Tokenizer& tokenizer,
                                            const train::BatchShape& shape, TokenId padding) {
  if (!files.is_given()) return nullptr;
  return std::make_shared<train::PairSource>(
      train::read_pairs(files.source, files.target, tokenizer), shape, padding);
}

train::RunSettings settings_of(const Seq2SeqFlags& flags, const train::PairSource& pairs) {
  const auto number = [](auto value) { return fmt::format("{}", value); };
  return {{"command", "seq2seq"},
          {"source", flags.text.source},
          {"target", flags.text.target},
          {"tokens", fmt::format("{} ({:016x})", pairs.n_tokens(), pairs.fingerprint())},
          {"tokenizer", flags.tokenizer},
          {"init", flags.init},
          {"teacher", flags.teacher},
          {"divergence", flags.divergence},
          {"dropout", number(flags.dropout)},
          {"label-smoothing", number(flags.label_smoothing)},
          {"layers", number(flags.layers)},
          {"decoder-layers", number(flags.decoder_layers)},
          {"dim", number(flags.dim)},
          {"heads", number(flags.heads)},
          {"head-dim", number(flags.head_dim)},
          {"hidden", number(flags.hidden)}};
}

// The test texts, read before the run so that a mistake in them does not wait for its end.
struct TestTexts {
  std::vector<std::vector<TokenId>> sources;
  std::vector<std::string> references;
};

TestTexts read_test(const PairFiles& files, const Tokenizer& tokenizer) {
  TestTexts test;
  if (!files.is_given()) return test;
  for (train::SentencePair& pair : train::read_pairs(files.source, files.target, tokenizer)) {
    test.sources.push_back(std::move(pair.source));
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

int run_seq2seq(const Seq2SeqFlags& flags) {
  require_both(flags.held_out, "held-out-source", "held-out-target");
  require_both(flags.test, "test-source", "test-target");
  if (!flags.teacher.empty()) {
    require_apart(flags.run, flags.teacher);
    if (flags.label_smoothing > 0) {
      throw UsageError(kOperation, "label-smoothing", "0 with --teacher, which says the whole law",
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
  options.config = config_of(flags, *tokenizer);
  options.products = products_of(flags.run);
  options.init = flags.init;
  options.seed = flags.run.seed;
  options.dropout = flags.dropout;
  options.label_smoothing = flags.label_smoothing;
  options.teacher = flags.teacher;
  options.divergence = divergence_of(flags.divergence);
  options.batches =
      pairs_of(flags.text, *tokenizer, batch_shape(flags.run), options.config.padding);
  train::BatchShape held_out = batch_shape(flags.run);
  held_out.seed = 0;  // the same batches whatever the run
  options.held_out = pairs_of(flags.held_out, *tokenizer, held_out, options.config.padding);
  options.tokenizer = flags.tokenizer;
  options.export_type = export_type_of(flags.run);
  const TestTexts test = read_test(flags.test, *tokenizer);

  const train::Seq2Seq seq2seq = train::make_seq2seq(options);
  std::string summary =
      fmt::format("{} parameters, {} of {} tokens", train::n_trained_parameters(*seq2seq.objective),
                  counted(options.batches->n_pairs(), "pair"), options.batches->n_tokens());
  if (options.batches->n_left_out() > 0) {
    summary += fmt::format(" ({} left out: a text longer than {} tokens)",
                           options.batches->n_left_out(), flags.run.length);
  }
  const int status = run_with_progress(*seq2seq.objective, flags.run,
                                       settings_of(flags, *options.batches), std::move(summary));
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

void add_shape(CLI::App& command, Seq2SeqFlags& flags) {
  constexpr const char* kShape = "Shape of the model (T5 v1.1)";
  const auto with_default = [](const char* words, int value) {
    return fmt::format("{} (default: {})", words, value);
  };
  add_integer(command, "--layers", flags.layers, 1,
              with_default("Layers of the encoder, and of the decoder", flags.layers))
      ->group(kShape);
  add_integer(command, "--decoder-layers", flags.decoder_layers, 1,
              "Layers of the decoder (default: as many as --layers)")
      ->group(kShape);
  add_integer(command, "--dim", flags.dim, 2, with_default("Width", flags.dim))->group(kShape);
  add_integer(command, "--heads", flags.heads, 1, with_default("Attention heads", flags.heads))
      ->group(kShape);
  add_integer(command, "--head-dim", flags.head_dim, 1,
              with_default("Width of a head; all together need not be --dim", flags.head_dim))
      ->group(kShape);
  add_integer(command, "--hidden", flags.hidden, 1,
              with_default("Width of the feed-forward layer", flags.hidden))
      ->group(kShape);
  add_path(command, "--init", flags.init, "DIR",
           "Start from the weights of this model, which has the same shape, instead of random ones")
      ->group(kShape);
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
                 "The same, to be answered when all is learnt, each by its likeliest tokens; the "
                 "answers stand in training/test_answers.txt",
                 "What to say for these: corpus BLEU is printed, with its 95% interval", false);
  add_path(*command, "--tokenizer", flags->tokenizer, "PATH",
           "Whose vocabulary, for both sides: a Hugging Face directory or a tokenizer.json; copied "
           "to --out")
      ->required()
      ->group("Data");
  add_shape(*command, *flags);
  constexpr const char* kTeacher = "Distillation";
  add_path(*command, "--teacher", flags->teacher, "DIR",
           "Learn what this model of the same kind and vocabulary would say behind the targets' "
           "tokens, instead of the tokens themselves")
      ->group(kTeacher);
  add_divergence(*command, flags->divergence, kTeacher);
  add_run_flags(*command, flags->run, "--held-out-source");
  constexpr RealRange kShare{0, true, 1, false, "a number in [0, 1)"};
  constexpr const char* kOptimiser = "Optimiser (AdamW)";
  add_real(*command, "--dropout", flags->dropout, kShare,
           "Share of embeddings, of what layers add and of their middles that is left out, at "
           "random, while it learns: for texts that are read many times (default: 0)")
      ->group(kOptimiser);
  add_real(*command, "--label-smoothing", flags->label_smoothing, kShare,
           "Share of each token's law that is spread over the vocabulary (default: 0)")
      ->group(kOptimiser);
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
