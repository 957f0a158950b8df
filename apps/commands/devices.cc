// SPDX-License-Identifier: Apache-2.0
// outrider devices: this machine's GPUs, and whether they compute the processor's bits.
#include "outrider/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

using DeviceJson = nlohmann::ordered_json;

struct DeviceFlags {
  std::string name;
  bool check = false;
  bool json = false;
};

struct CheckedDevice {
  DeviceSummary summary;
  std::vector<DeviceCheck> checks;  // if requested
  std::string check_error;          // the error that ended the check

  bool passed() const {
    return check_error.empty() && std::all_of(checks.begin(), checks.end(), [](const auto& check) {
             return check.trouble.empty();
           });
  }
};

CheckedDevice look_at(const DeviceSummary& summary, bool check) {
  CheckedDevice device{.summary = summary, .checks = {}, .check_error = {}};
  if (!check || !summary.refused.empty()) return device;
  try {
    device.checks = check_device(summary.name);
  } catch (const Error& error) {
    device.check_error = error.what();
  }
  return device;
}

std::string mebibytes(std::size_t n_bytes) { return fmt::format("{} MiB", n_bytes >> 20); }

std::string describe_device(const CheckedDevice& device) {
  const DeviceSummary& summary = device.summary;
  std::string text = fmt::format("{}: {}\n  driver      {}\n  kind        {}{}\n", summary.name,
                                 one_line(summary.title), one_line(summary.driver), summary.kind,
                                 summary.is_software ? " (never chosen by itself)" : "");
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  memory      {}, buffers of at most {}\n", mebibytes(summary.memory_bytes),
                 mebibytes(summary.max_buffer_bytes));
  if (!summary.refused.empty()) {
    fmt::format_to(out, "  refused     {}\n", one_line(summary.refused));
    return text;
  }
  fmt::format_to(out, "  arithmetic  {}\n", summary.tier);
  for (const DeviceCheck& check : device.checks) {
    fmt::format_to(out, "  {:<4}  {}{}{}\n", check.trouble.empty() ? "same" : "DIFF", check.what,
                   check.trouble.empty() ? "" : ": ", one_line(check.trouble));
  }
  if (!device.check_error.empty()) {
    fmt::format_to(out, "  check       {}\n", one_line(device.check_error));
  } else if (!device.checks.empty()) {
    text += device.passed() ? "  check       all bits are those of the processor\n"
                            : "  check       not all bits are those of the processor\n";
  }
  return text;
}

DeviceJson json_of(const CheckedDevice& device) {
  const DeviceSummary& summary = device.summary;
  DeviceJson object;
  object["name"] = summary.name;
  object["title"] = summary.title;
  object["driver"] = summary.driver;
  object["kind"] = summary.kind;
  object["software"] = summary.is_software;
  object["memory_bytes"] = summary.memory_bytes;
  object["max_buffer_bytes"] = summary.max_buffer_bytes;
  if (!summary.refused.empty()) object["refused"] = summary.refused;
  if (!summary.tier.empty()) object["arithmetic"] = summary.tier;
  if (!device.check_error.empty()) object["check_error"] = device.check_error;
  if (!device.checks.empty()) {
    DeviceJson checks = DeviceJson::array();
    for (const DeviceCheck& check : device.checks) {
      checks.push_back({{"what", check.what}, {"trouble", check.trouble}});
    }
    object["checks"] = std::move(checks);
    object["same_bits"] = device.passed();
  }
  return object;
}

int run_devices(const DeviceFlags& flags) {
  const DeviceList list = list_devices();
  std::vector<CheckedDevice> devices;
  for (const DeviceSummary& summary : list.devices) {
    if (!flags.name.empty() && flags.name != summary.name) continue;
    devices.push_back(look_at(summary, flags.check));
  }
  if (!flags.name.empty() && devices.empty()) {
    throw UsageError("list devices", flags.name, "one of those that outrider devices lists",
                     "none of them");
  }
  Output output;
  if (flags.json) {
    DeviceJson object;
    object["devices"] = DeviceJson::array();
    for (const CheckedDevice& device : devices) object["devices"].push_back(json_of(device));
    object["missing"] = DeviceJson::object();
    for (const MissingApi& missing : list.missing) object["missing"][missing.api] = missing.why;
    output.write(object.dump(2, ' ', false, DeviceJson::error_handler_t::replace) + "\n");
  } else {
    for (const CheckedDevice& device : devices) output.write(describe_device(device));
    for (const MissingApi& missing : list.missing) {
      if (!flags.name.empty()) break;
      output.write(fmt::format("{}: no device: {}\n", missing.api, one_line(missing.why)));
    }
  }
  output.check();
  const bool passed = std::all_of(devices.begin(), devices.end(),
                                  [](const CheckedDevice& device) { return device.passed(); });
  return passed ? 0 : kExitError;
}

}  // namespace

CLI::App* add_devices(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("devices", "List GPUs and check their arithmetic")->group("Commands");
  const auto flags = std::make_shared<DeviceFlags>();
  add_filled_text(*app, "NAME", flags->name, "", "the name of a device",
                  "This one alone, for example vulkan:0; all if it is not given");
  app->add_flag("--check", flags->check,
                "Compute known answers on each device and compare their bits with the "
                "processor's; the exit status is 1 where some differ");
  app->add_flag("--json", flags->json, "As JSON");
  app->footer(
      "Examples:\n"
      "  outrider devices\n"
      "  outrider devices --check\n"
      "  outrider devices vulkan:0 --check --json\n");
  run_command = [flags] { return run_devices(*flags); };
  return app;
}

}  // namespace outrider::cli
