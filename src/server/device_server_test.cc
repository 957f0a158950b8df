// SPDX-License-Identifier: Apache-2.0
// A server whose model runs on a device that fails: its memory is used up, and it is lost. A layer
// in front of a software driver causes the faults (tests/support/vulkan_faults.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "outrider/model.h"
#include "server/server.h"
#include "tests/support/http_client.h"
#include "tests/support/models/served_models.h"
#include "tests/support/software_device.h"
#include "tests/support/vulkan_faults.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::HttpAnswer;
using test::HttpClient;
using ::testing::HasSubstr;

TEST(DeviceServer, AnswersWhereMemoryIsOutAndWhereTheDeviceIsLost) {
  if (!test::VulkanFaults::are_built()) GTEST_SKIP() << "no layer that breaks drivers";
  const test::VulkanFaults faults;
  const std::string device = test::software_device();
  if (device.empty()) GTEST_SKIP() << test::kNoSoftwareDevice;
  ServedOptions served;
  served.name = "tiny";
  const auto model = std::make_shared<const ServedModel>(
      Model::load(test::ServedModels::get().target(),
                  {.weights = "int8", .threads = 1, .device = device}),
      served);
  Server server(model, {.port = 0});
  std::thread runs([&] { server.run(); });
  const auto ask = [&](const std::string& prompt) {
    const json body = {
        {"prompt", prompt}, {"max_tokens", 4}, {"temperature", 0}, {"ignore_eos", true}};
    // A software driver takes long to compile kernels.
    return HttpClient(server.port(), std::chrono::minutes(5))
        .post("/v1/completions", body.dump(), test::kJsonFields);
  };
  const auto text_of = [](const HttpAnswer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body)["choices"][0]["text"];
  };
  const auto health = [&] { return HttpClient(server.port()).get("/health"); };
  const json before = text_of(ask("a"));

  faults.set("no memory");
  const std::string long_prompt(60, 'b');  // needs more memory than there is
  const HttpAnswer refused = ask(long_prompt);
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("out of the device's memory"));
  EXPECT_EQ(health().status, 200);
  faults.set("");
  EXPECT_EQ(text_of(ask("a")), before);
  text_of(ask(long_prompt));

  faults.set("lost at wait");
  for (int time = 0; time < 2; ++time) {
    const HttpAnswer lost = ask("a");
    EXPECT_EQ(lost.status, 503) << lost.body;
    EXPECT_THAT(lost.body, HasSubstr("model_lost"));
    EXPECT_THAT(lost.body, HasSubstr("lost (its driver gave up on it)"));
    faults.set("");  // a lost device stays lost
  }
  for (const char* path : {"/health", "/ready"}) {
    const HttpAnswer answer = HttpClient(server.port()).get(path);
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("was lost"));
  }
  server.stop();
  runs.join();
}

}  // namespace
}  // namespace outrider::server
