// SPDX-License-Identifier: Apache-2.0
#include "chat_template/functions/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "chat_template/functions/filters.h"
#include "chat_template/functions/parameters.h"
#include "chat_template/values/operations.h"
#include "chat_template/values/printed.h"
#include "chat_template/values/text_search.h"

namespace outrider::jinja {
namespace {

template <bool (*kIs)(const Value&)>
bool of_kind(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("test", arguments, {});
  return kIs(subject);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is(Kind::boolean); }
bool is_true(const Value& value) { return value.is(Kind::boolean) && value.as_boolean(); }
bool is_false(const Value& value) { return value.is(Kind::boolean) && !value.as_boolean(); }
bool is_integer(const Value& value) { return value.is(Kind::integer); }
bool is_float(const Value& value) { return value.is(Kind::real); }
bool is_number(const Value& value) { return value.is_number(); }
bool is_string(const Value& value) { return value.is_text(); }
bool is_mapping(const Value& value) { return value.is_dict(); }
bool is_callable(const Value& value) {
  return value.is(Kind::function) || value.is(Kind::loop) || value.is_undefined();
}
bool is_escaped(const Value& value) { return value.is_text() && value.as_text().is_markup; }
bool is_sequence(const Value& value) {
  return has_length(value) && !value.is(Kind::dict_view) && !value.is(Kind::loop);
}

template <Operator kOperator>
bool compared(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("test", arguments, {""});
  return compare(kOperator, subject, given.required(0), heap);
}

bool is_in(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("in", arguments, {"seq"});
  return contains(given.required(0), subject, heap);
}

bool rest_is(const Value& subject, const Value& divisor, std::int64_t rest, Heap& heap) {
  return equal(arithmetic(Operator::modulo, subject, divisor, heap), Value::integer(rest), heap);
}

bool is_even(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("even", arguments, {});
  return rest_is(subject, Value::integer(2), 0, heap);
}

bool is_odd(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("odd", arguments, {});
  return rest_is(subject, Value::integer(2), 1, heap);
}

bool is_divisible(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("divisibleby", arguments, {"num"});
  return rest_is(subject, given.required(0), 0, heap);
}

template <bool (*kIs)(std::string_view)>
bool is_cased_text(const Value& subject, const Arguments& arguments, Heap& heap) {
  const Parameters given("lower, upper", arguments, {});
  return kIs(printed(subject, heap));
}

bool is_same(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("sameas", arguments, {"other"});
  const Value& other = given.required(0);
  if (subject.kind() != other.kind()) return false;
  if (subject.is_none()) return true;
  if (subject.is(Kind::real)) return false;
  if (subject.is_text()) return subject.as_text().bytes == other.as_text().bytes;
  return subject.is_integral() ? subject.as_integer() == other.as_integer()
                               : subject.object() == other.object();
}

bool is_filter(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("filter", arguments, {});
  return subject.is_text() && find_filter(subject.as_text().bytes) != nullptr;
}

bool is_test(const Value& subject, const Arguments& arguments, Heap& /*heap*/) {
  const Parameters given("test", arguments, {});
  return subject.is_text() && find_check(subject.as_text().bytes) != nullptr;
}

struct NamedCheck {
  std::string_view name;
  Check check;
};
constexpr NamedCheck kChecks[] = {
    {"defined", of_kind<is_defined>},
    {"undefined", of_kind<is_undefined>},
    {"none", of_kind<is_none>},
    {"boolean", of_kind<is_boolean>},
    {"true", of_kind<is_true>},
    {"false", of_kind<is_false>},
    {"integer", of_kind<is_integer>},
    {"float", of_kind<is_float>},
    {"number", of_kind<is_number>},
    {"string", of_kind<is_string>},
    {"mapping", of_kind<is_mapping>},
    {"sequence", of_kind<is_sequence>},
    {"iterable", of_kind<is_iterable>},
    {"callable", of_kind<is_callable>},
    {"escaped", of_kind<is_escaped>},
    {"==", compared<Operator::equal>},
    {"eq", compared<Operator::equal>},
    {"equalto", compared<Operator::equal>},
    {"!=", compared<Operator::not_equal>},
    {"ne", compared<Operator::not_equal>},
    {"<", compared<Operator::less>},
    {"lt", compared<Operator::less>},
    {"lessthan", compared<Operator::less>},
    {"<=", compared<Operator::less_equal>},
    {"le", compared<Operator::less_equal>},
    {">", compared<Operator::greater>},
    {"gt", compared<Operator::greater>},
    {"greaterthan", compared<Operator::greater>},
    {">=", compared<Operator::greater_equal>},
    {"ge", compared<Operator::greater_equal>},
    {"in", is_in},
    {"even", is_even},
    {"odd", is_odd},
    {"divisibleby", is_divisible},
    {"lower", is_cased_text<all_cased_lower>},
    {"upper", is_cased_text<all_cased_upper>},
    {"sameas", is_same},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

Check find_check(std::string_view name) {
  const auto* found = std::find_if(std::begin(kChecks), std::end(kChecks),
                                   [name](const NamedCheck& one) { return one.name == name; });
  return found == std::end(kChecks) ? nullptr : found->check;
}

bool apply_check(std::string_view name, const Value& subject, const Arguments& arguments,
                 Heap& heap) {
  const Check check = find_check(name);
  if (check == nullptr) fail(fmt::format("expected a known test, got '{}'", name));
  heap.count_steps(1);
  return check(subject, arguments, heap);
}

}  // namespace outrider::jinja
