// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/float_modes.h"

#include <cstddef>

namespace outrider::device {
namespace {

// From the SPIR-V specification: numbers of instructions, capabilities and execution modes.
constexpr std::uint32_t kMagic = 0x07230203;
constexpr std::size_t kHeaderWords = 5;
constexpr std::uint32_t kOpEntryPoint = 15;
constexpr std::uint32_t kOpExecutionMode = 16;
constexpr std::uint32_t kOpCapability = 17;
constexpr std::uint32_t kFloat64 = 10;

struct Mode {
  std::uint32_t capability;
  std::uint32_t mode;
};
constexpr Mode kDenormPreserve = {4464, 4459};
constexpr Mode kSignedZeroInfNanPreserve = {4466, 4461};
constexpr Mode kRoundingModeRte = {4467, 4462};

std::uint32_t first_word(std::uint32_t op, std::uint32_t n_words) { return n_words << 16 | op; }

// The result of one pass over the module.
struct Places {
  std::size_t behind_capabilities = 0;
  std::size_t behind_entry_point = 0;
  std::uint32_t entry_point = 0;  // the id of its function
  bool has_double = false;
};

Places find_places(std::span<const std::uint32_t> module) {
  Places places;
  if (module.size() < kHeaderWords || module[0] != kMagic) return places;
  for (std::size_t at = kHeaderWords; at < module.size();) {
    const std::uint32_t op = module[at] & 0xffffU;
    const std::size_t n_words = module[at] >> 16;
    if (n_words == 0 || n_words > module.size() - at) return {};
    if (op == kOpCapability && n_words == 2) {
      places.behind_capabilities = at + n_words;
      if (module[at + 1] == kFloat64) places.has_double = true;
    }
    if (op == kOpEntryPoint && n_words > 2) {
      places.behind_entry_point = at + n_words;
      places.entry_point = module[at + 2];
    }
    at += n_words;
  }
  return places;
}

class Additions {
 public:
  explicit Additions(std::uint32_t entry_point) : entry_point_(entry_point) {}

  void add(const Mode& mode, bool of_float, bool of_double) {
    if (!of_float && !of_double) return;
    capabilities.insert(capabilities.end(), {first_word(kOpCapability, 2), mode.capability});
    for (const std::uint32_t width : {32U, 64U}) {
      if (!(width == 32 ? of_float : of_double)) continue;
      modes.insert(modes.end(), {first_word(kOpExecutionMode, 4), entry_point_, mode.mode, width});
    }
  }

  std::vector<std::uint32_t> capabilities;
  std::vector<std::uint32_t> modes;

 private:
  std::uint32_t entry_point_;
};

}  // namespace

std::vector<std::uint32_t> with_float_modes(std::span<const std::uint32_t> module,
                                            const FloatModes& modes,
                                            const FloatModes& double_modes) {
  std::vector<std::uint32_t> code(module.begin(), module.end());
  const Places places = find_places(module);
  if (places.behind_capabilities == 0 || places.behind_entry_point == 0) return code;
  const bool wide = places.has_double;
  Additions additions(places.entry_point);
  additions.add(kDenormPreserve, modes.keeps_subnormals, wide && double_modes.keeps_subnormals);
  additions.add(kSignedZeroInfNanPreserve, modes.keeps_infinities,
                wide && double_modes.keeps_infinities);
  additions.add(kRoundingModeRte, modes.rounds_to_even, wide && double_modes.rounds_to_even);
  // Inserts at the later place first, so that the earlier one does not move.
  const auto insert = [&](std::size_t at, const std::vector<std::uint32_t>& words) {
    code.insert(code.begin() + static_cast<std::ptrdiff_t>(at), words.begin(), words.end());
  };
  insert(places.behind_entry_point, additions.modes);
  insert(places.behind_capabilities, additions.capabilities);
  return code;
}

}  // namespace outrider::device
