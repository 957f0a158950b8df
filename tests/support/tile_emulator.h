// Matrix units (Intel AMX: INT8 and BF16 tiles) in software, so that the table that wants them is
// tested on processors without, too: hundreds of times slower than the rest, with the same results.
#ifndef OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_
#define OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_

namespace outrider::test_support {

// From now on the process carries out tile instructions itself where the processor calls them
// unknown, on every thread, as the manual's pseudocode has them (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2, "TDPBSSD" and its neighbours). What the manual calls a
// fault ends the process with a line that says which. False, and nothing done, where this system or
// compiler is not one that the emulator knows (Linux, x86-64). Thread-safe.
bool emulate_tiles();

}  // namespace outrider::test_support

#endif  // OUTRIDER_TESTS_SUPPORT_TILE_EMULATOR_H_
