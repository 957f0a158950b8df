// SPDX-License-Identifier: Apache-2.0
#include "tensor/kernels_in_use.h"

#include <cstdlib>
#include <string>

#include "kernels/dispatch.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// "scalar, avx2, avx512 (not on this machine)"
std::string known_tables() {
  std::string list;
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    if (!list.empty()) list += ", ";
    list += table->name;
    if (!kernels::is_supported(*table)) list += " (not on this machine)";
  }
  return list;
}

}  // namespace

const kernels::KernelTable& choose_kernels(std::string_view name) {
  std::string wanted(name);
  if (wanted.empty()) {
    const char* forced = std::getenv("OUTRIDER_KERNELS");
    if (forced != nullptr) wanted = forced;
  }
  if (wanted.empty()) return kernels::best_table();
  // A name with a zero byte would be truncated in the comparison.
  const bool whole = wanted.find('\0') == std::string::npos;
  const kernels::KernelTable* table = whole ? kernels::find_table(wanted.c_str()) : nullptr;
  if (table == nullptr) {
    throw UsageError("choose kernels", "kernel table", "one of " + known_tables(), wanted);
  }
  if (!kernels::is_supported(*table)) {
    throw UsageError("choose kernels", "kernel table",
                     "one that this machine can run of " + known_tables(), wanted);
  }
  return *table;
}

}  // namespace outrider
