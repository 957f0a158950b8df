// SPDX-License-Identifier: Apache-2.0
// Matrix units (Intel AMX: INT8 and BF16 tiles) in software, so that the amx table is tested on
// processors without them. It is hundreds of times slower, with the same results.
#ifndef OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_
#define OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_

namespace outrider::test {

// After this call the process executes tile instructions in software where the processor does not
// implement them, on every thread, by the manual's pseudocode (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2, "TDPBSSD" and its neighbours). A fault of the manual ends
// the process with a line that describes it. Returns false, with no effect, on systems and
// compilers other than those supported (Linux, x86-64). Thread-safe.
bool emulate_tiles();

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_
