// SPDX-License-Identifier: Apache-2.0
// POST /v1/embeddings: the mean of the last hidden states, scaled to length 1.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/embed.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"
#include "server/endpoints/endpoints.h"

namespace outrider::server {
namespace {

constexpr std::size_t kMaxTexts = 2048;  // OpenAI's limit

using Ids = std::vector<TokenId>;

Ids ids_of(const JsonFields& body, const ServedModel& model, const Json& list) {
  Ids ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    const bool is_one = id.is_number_integer() && id.get<std::int64_t>() >= 0 &&
                        id.get<std::int64_t>() <= INT32_MAX &&
                        model.tokenizer().has(id.get<TokenId>());
    if (!is_one) body.refuse("input", "tokens of this model", id.dump());
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

// A text, a list of texts, a list of tokens, or a list of token lists.
std::vector<Ids> texts_of(JsonFields& body, const ServedModel& model) {
  const Json& input = body.require("input");
  const auto encode = [&](const Json& text) {
    return model.tokenizer().encode(text.get_ref<const std::string&>(), true);
  };
  std::vector<Ids> texts;
  if (input.is_string()) return {encode(input)};
  if (!input.is_array()) {
    body.refuse("input", "a text or a list", std::string(kind_of(input)));
  }
  if (!input.empty() && input.front().is_number()) return {ids_of(body, model, input)};
  if (input.size() > kMaxTexts) {
    body.refuse("input", fmt::format("at most {} texts", kMaxTexts), std::to_string(input.size()));
  }
  for (const Json& one : input) {
    if (one.is_string()) {
      texts.push_back(encode(one));
    } else if (one.is_array()) {
      texts.push_back(ids_of(body, model, one));
    } else {
      body.refuse("input", "texts or lists of tokens", std::string(kind_of(one)));
    }
  }
  if (texts.empty()) body.refuse("input", "at least one text", "none");
  return texts;
}

// Little-endian floats in base 64, as OpenAI's clients request.
std::string base64_of(const std::vector<float>& vector) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes(vector.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= n ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

// Checked before other texts are preempted for a text that the KV cache could never hold.
void require_memory(const ServedModel& model, std::size_t n_tokens) {
  constexpr std::size_t kPage = 64;   // tokens per page of keys
  constexpr std::size_t kNodes = 8;   // nodes per page of the inputs of recurrent layers
  constexpr std::size_t kPass = 256;  // tokens of a step (outrider/embed.h)
  const ModelSummary& summary = model.model().summary();
  const auto whole = [](std::size_t n, std::size_t page) { return (n + page - 1) / page * page; };
  const std::uint64_t need =
      whole(n_tokens, kPage) * static_cast<std::uint64_t>(summary.kv_bytes_per_token) +
      whole(std::min(n_tokens, kPass), kNodes) *
          static_cast<std::uint64_t>(summary.state_bytes_per_node) +
      static_cast<std::uint64_t>(summary.state_bytes);
  // With several ranks both are rank 0's. All ranks hold the same number of tokens.
  const auto most = static_cast<std::uint64_t>(summary.max_kv_bytes);
  if (most == 0 || need <= most) return;
  const std::string limit = summary.n_ranks() == 1 ? "--kv-memory" : "rank 0's part of --kv-memory";
  throw ApiError(400,
                 fmt::format("input: expected texts that take at most {} bytes of KV cache "
                             "({}), got one of {} tokens, which takes {}",
                             most, limit, n_tokens, need),
                 "input");
}

// Embeds the texts of a request, one after the other.
class Embeddings {
 public:
  Embeddings(const Call& call, std::vector<Ids> texts, bool in_base64)
      : model_(call.model), reply_(call.reply), texts_(std::move(texts)), in_base64_(in_base64) {
    for (const Ids& text : texts_) n_tokens_ += text.size();
  }

  // Returns false once all is done and answered. If the KV cache's memory is bounded, the batch's
  // texts give way, and a text is run completely: it holds nothing between steps.
  bool step(Batch& batch) {
    try {
      if (gone_) {
        current_.reset();  // freed here: its memory belongs to the loop's thread
        return false;
      }
      if (current_ == nullptr) {
        current_ = std::make_unique<Embedding>(model_->loop().model(), texts_[data_.size()]);
        batch.make_room([this] { return current_->fits(); });
      }
      const bool bounded = model_->model().summary().max_kv_bytes > 0;
      while (current_->step()) {
        if (!bounded) return true;
      }
      add(current_->vector());
      current_.reset();
      if (data_.size() < texts_.size()) return true;
      Json json;
      json["object"] = "list";
      json["data"] = std::move(data_);
      json["model"] = model_->name();
      json["usage"] = {{"prompt_tokens", n_tokens_}, {"total_tokens", n_tokens_}};
      send_json(*reply_, json);
    } catch (...) {
      current_.reset();
      reply_->send(error_response(api_error_of(std::current_exception())));
    }
    return false;
  }
  void leave() { gone_ = true; }

 private:
  void add(const std::vector<float>& vector) {
    Json one;
    one["object"] = "embedding";
    one["index"] = data_.size();
    one["embedding"] = in_base64_ ? Json(base64_of(vector)) : Json(vector);
    data_.push_back(std::move(one));
  }

  std::shared_ptr<const ServedModel> model_;
  std::shared_ptr<HttpReply> reply_;
  std::vector<Ids> texts_;
  bool in_base64_;
  std::size_t n_tokens_ = 0;
  std::unique_ptr<Embedding> current_;
  Json data_ = Json::array();
  std::atomic<bool> gone_{false};
};

}  // namespace

void embeddings(const Call& call) {
  JsonFields body(*call.body);
  body.accept({"model", "user"});
  std::vector<Ids> texts = texts_of(body, *call.model);
  for (const Ids& text : texts) {
    require_memory(*call.model, text.size());
    if (static_cast<int>(text.size()) <= call.model->context()) continue;
    throw ApiError(400,
                   fmt::format("a text has {} tokens: expected at most the context of {}",
                               text.size(), call.model->context()),
                   "input", "context_length_exceeded");
  }
  const std::string form = body.text("encoding_format").value_or("float");
  if (form != "float" && form != "base64") {
    body.refuse("encoding_format", "float or base64", fmt::format("'{}'", form));
  }
  if (body.has("dimensions")) {
    body.refuse("dimensions", "none: this model's vectors cannot be cut", "a number");
  }
  body.finish();
  const auto work = std::make_shared<Embeddings>(call, std::move(texts), form == "base64");
  call.model->loop().post([work](Batch& batch) { return work->step(batch); });
  call.reply->on_gone([work] { work->leave(); });
}

}  // namespace outrider::server
