// SPDX-License-Identifier: Apache-2.0
// outrider serve: the model as an HTTP server with OpenAI's endpoints.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/cli/entry.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/flags/trace_flags.h"
#include "apps/profile_file.h"
#include "apps/run_on_ranks.h"
#include "outrider/error.h"
#include "server/server.h"

namespace outrider::cli {
namespace {

struct ServeFlags {
  ModelFlags model;
  std::vector<std::string> further_drafters;
  SamplingParams sampling = {.temperature = 1};  // OpenAI's default
  server::ServerOptions server;
  int parallel = 32;
  int queue = 256;
  int context = 0;
  double max_time = 0;
  std::string slot_folder;
  bool trusts_messages = false;
  std::string name;
  std::string key_file;
  std::string template_file;
  std::string trace;
  std::string models;
  int max_models = 1;
};

void serve_notice(const std::string& line) { fmt::print(stderr, "outrider: {}\n", line); }

// One key per line; empty lines and lines that begin with # are skipped.
std::vector<std::string> read_keys(const std::string& file) {
  std::vector<std::string> keys;
  const std::string text = read_text(file);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(std::move(line));
    begin = end + 1;
  }
  if (keys.empty()) throw Error("serve", file, "a key in each line", "none");
  return keys;
}

// The options for each model.
server::ServedOptions served_options(const ServeFlags& flags) {
  server::ServedOptions served;
  served.speculation = speculation_of(flags.model);
  if (served.speculation.drafter != "none") served.drafters.push_back(served.speculation.drafter);
  served.drafters.insert(served.drafters.end(), flags.further_drafters.begin(),
                         flags.further_drafters.end());
  served.sampling = flags.sampling;
  served.batch.max_running = flags.parallel;
  served.batch.max_kept = flags.parallel;
  served.max_waiting = static_cast<std::size_t>(flags.queue);
  served.context = flags.context;
  served.max_seconds = flags.max_time;
  if (!flags.slot_folder.empty() && !std::filesystem::is_directory(flags.slot_folder)) {
    throw Error("serve", "--slot-save-path", "a folder", fmt::format("'{}'", flags.slot_folder));
  }
  served.slot_folder = flags.slot_folder;
  served.guard = flags.trusts_messages ? MessageGuard::none : MessageGuard::special_tokens;
  if (!flags.template_file.empty()) served.chat_template = read_text(flags.template_file);
  served.metrics = std::make_shared<server::Metrics>();
  return served;
}

// Keeps this model's drafting profile from one run to the next.
void keep_profile(const ModelFlags& flags, server::ServedOptions& served) {
  const ProfileFile profile(flags, !served.drafters.empty());
  served.prepare = [profile](Batch& batch) { profile.prepare(batch); };
  served.finish = [profile](const Batch& batch) { profile.save(batch); };
}

// The models of a folder, by name.
std::shared_ptr<server::ModelShelf> shelf_of(const ServeFlags& flags,
                                             const server::ServedOptions& served,
                                             ProgramTrace& trace, const Interrupt& interrupt) {
  const std::map<std::string, std::string> models = server::models_in(flags.models);
  std::vector<std::string> names;
  names.reserve(models.size());
  for (const auto& [name, path] : models) names.push_back(name);
  const auto turn = std::make_shared<server::StepTurn>();
  const auto load = [flags = flags.model, served, models, turn, &trace,
                     &interrupt](const std::string& name) {
    ModelFlags own = flags;
    own.model = models.at(name);
    server::ServedOptions options = served;
    options.name = name;
    options.turn = turn;
    keep_profile(own, options);
    options.batch.observer = trace.observer(name);
    return std::make_shared<const server::ServedModel>(load_model(own, interrupt), options);
  };
  return std::make_shared<server::ModelShelf>(
      std::move(names), static_cast<std::size_t>(flags.max_models), load, served.metrics);
}

int serve(const ServeFlags& flags) {
  if (!flags.models.empty() && !flags.model.profile.empty() && flags.model.profile != "none") {
    throw UsageError("read flags", "--profile", "none, or one --model: each model has its own file",
                     "a file with --models");
  }
  Interrupt interrupt;
  server::ServerOptions options = flags.server;
  if (!flags.key_file.empty()) options.router.api_keys = read_keys(flags.key_file);
  server::ServedOptions served = served_options(flags);
  ProgramTrace trace(flags.trace, flags.model);
  std::shared_ptr<server::ModelShelf> models;
  std::string what;
  if (!flags.models.empty()) {
    models = shelf_of(flags, served, trace, interrupt);
    what = fmt::format("{} models of {}", models->list().size(), flags.models);
  } else {
    served.name =
        flags.name.empty() ? std::filesystem::path(flags.model.model).stem().string() : flags.name;
    what = served.name;
    keep_profile(flags.model, served);
    served.batch.observer = trace.observer(served.name);
    models = std::make_shared<server::ModelShelf>(
        std::make_shared<const server::ServedModel>(load_model(flags.model, interrupt), served));
  }
  server::Server server(models, options);
  const bool is_local =
      options.host == "127.0.0.1" || options.host == "localhost" || options.host == "::1";
  if (!is_local && options.router.api_keys.empty()) {
    serve_notice(fmt::format("warning: {} can be reached by others, and there is no --api-key-file",
                             options.host));
  }
  serve_notice(fmt::format("{} at http://{}:{} (Ctrl-C: no more requests, then the end)", what,
                           options.host, server.port()));
  // Signals are polled, since handlers may do almost nothing.
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    constexpr std::chrono::milliseconds kPause(50);
    while (!ended && !interrupt.raised()) {
      std::this_thread::sleep_for(kPause);
      trace.warn_of_failure();
    }
    if (!ended) server.drain();
  });
  server.run();
  ended = true;
  watcher.join();
  trace.warn_of_failure();
  Interrupt::settle();  // service managers stop a server with it, and it has stopped
  const std::shared_ptr<Ranks> ranks = ranks_in_use();
  if (ranks != nullptr && !ranks->failure().empty())
    return fail(kExitError, "the model was lost: " + ranks->failure());
  return 0;
}

}  // namespace

CLI::App* add_serve(CLI::App& program, Run& run) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* const app =
      program
          .add_subcommand("serve", "Answer the HTTP requests of OpenAI's and Anthropic's clients")
          ->group("Commands");
  add_model_flags(*app, flags->model);
  add_device_flag(*app, flags->model);
  app->add_option("--also-drafter", flags->further_drafters,
                  "A further drafter that requests may name (repeat it for more)")
      ->type_name("SPEC")
      ->group("Speculation");
  add_profile_place(*app, flags->model,
                    "Where what passes cost and drafts brought is kept for the next time; none: "
                    "nowhere (default: a file of the model's in ~/.cache/outrider)")
      ->group("Speculation");
  add_transform_flags(*app, flags->sampling);
  constexpr const char* kServer = "Server";
  app->add_option("--host", flags->server.host, "Address to listen at (default: 127.0.0.1)")
      ->type_name("ADDRESS")
      ->group(kServer);
  app->add_option("--port", flags->server.port, "Port; 0 takes a free one (default: 8080)")
      ->check(CLI::Range(0, 65535))
      ->type_name("N")
      ->group(kServer);
  add_path(*app, "--api-key-file", flags->key_file, "FILE",
           "Keys, one a line; requests without one get 401")
      ->group(kServer);
  app->add_option("--cors", flags->server.router.cors_origin,
                  "Origin whose pages may ask (default: none)")
      ->type_name("ORIGIN")
      ->group(kServer);
  add_integer(*app, "--parallel", flags->parallel, 1, "Texts decoded at a time (default: 32)")
      ->group(kServer);
  add_integer(*app, "--queue", flags->queue, 0,
              "Requests that wait; one more gets 429 (default: 256)")
      ->group(kServer);
  add_integer(*app, "--context", flags->context, 0,
              "Most tokens of prompt and answer; 0: the model's own (default: 0)")
      ->group(kServer);
  app->add_option("--max-time", flags->max_time,
                  "Most seconds of a request, its waiting included; 0: no bound (default: 0)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->group(kServer);
  add_path(*app, "--slot-save-path", flags->slot_folder, "DIR",
           "Where /slots/N?action=save writes texts with their KV cache (default: nowhere)")
      ->group(kServer);
  CLI::Option* const model = app->get_option("--model");
  add_path(*app, "--models", flags->models, "DIR",
           "Instead of --model: all models in a folder, loaded when they are asked for")
      ->group(kServer)
      ->excludes(model)
      ->each([model](const std::string&) { model->required(false); });
  add_integer(*app, "--most-models", flags->max_models, 1,
              "Models of --models that are loaded at a time (default: 1)")
      ->group(kServer);
  add_path(*app, "--chat-template", flags->template_file, "FILE",
           "Jinja template of chats (default: the model's own)")
      ->group(kServer);
  app->add_flag("--trust-messages", flags->trusts_messages,
                "Special tokens that messages spell are these tokens (default: they are text)")
      ->group(kServer);
  add_trace_flag(*app, flags->trace)->group(kServer);
  app->add_option("--name", flags->name, "The model's name (default: its file's)")
      ->type_name("NAME")
      ->group(kServer);
  show_usual(*app,
             {"--temperature", "--top-k", "--top-p", "--host", "--port", "--api-key-file", "--cors",
              "--parallel", "--queue", "--context", "--models", "--chat-template", "--name"});
  app->footer(
      "Example:\n"
      "  outrider serve --model qwen2.5-coder-1.5b-instruct.gguf --drafter suffix\n");
  allow_ranks(*app, flags->model, [flags] {
    if (!flags->models.empty()) {
      throw UsageError("read flags", "--models", "one --model, with several ranks", flags->models);
    }
    if (!flags->slot_folder.empty()) {
      throw UsageError("read flags", "--slot-save-path",
                       "none, with several ranks (each has a part of a text's KV cache)",
                       flags->slot_folder);
    }
  });
  run = [flags] { return serve(*flags); };
  return app;
}

}  // namespace outrider::cli
