// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tile_emulator.h"

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace outrider::test {
namespace {

constexpr int kTiles = 8;
constexpr int kMaxRows = 16;
constexpr int kMaxRowBytes = 64;

struct Tile {
  int rows = 0;
  int row_bytes = 0;
  std::uint8_t bytes[kMaxRows][kMaxRowBytes] = {};

  template <class Element>
  Element at(int row, int index) const {
    Element element;
    std::memcpy(&element, &bytes[row][static_cast<std::size_t>(index) * sizeof element],
                sizeof element);
    return element;
  }
  template <class Element>
  void set(int row, int index, Element element) {
    std::memcpy(&bytes[row][static_cast<std::size_t>(index) * sizeof element], &element,
                sizeof element);
  }
  void clear() { std::memset(bytes, 0, sizeof bytes); }
};

// The state that a processor keeps per thread.
struct TileState {
  bool configured = false;
  Tile tiles[kTiles];
};
thread_local TileState state;

// A signal handler may do no more: no formatting, no locks, no heap.
[[noreturn]] void fault(const char* why) {
  const auto say = [](const char* text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text, std::strlen(text));
  };
  say("tile emulator: ");
  say(why);
  say("\n");
  std::_Exit(1);
}

void require(bool holds, const char* why) {
  if (!holds) fault(why);
}

Tile& configured_tile(int index) {
  require(state.configured, "a tile is used before LDTILECFG");
  require(index < kTiles, "a tile register above 7");
  Tile& tile = state.tiles[index];
  require(tile.rows > 0, "a tile is used that has no rows");
  return tile;
}

void load_config(const std::uint8_t* config) {
  state = TileState();
  if (config[0] == 0) return;
  require(config[0] == 1, "LDTILECFG: a palette other than 0 and 1");
  for (int i = 1; i < 16; ++i) require(config[i] == 0, "LDTILECFG: bytes 1 to 15 are not zero");
  for (int i = 0; i < kMaxRows; ++i) {
    std::uint16_t row_bytes;
    std::memcpy(&row_bytes, config + 16 + 2 * i, sizeof row_bytes);
    const std::uint8_t rows = config[48 + i];
    if (i >= kTiles) {
      require(row_bytes == 0 && rows == 0, "LDTILECFG: a shape for a register above 7");
      continue;
    }
    require(row_bytes <= kMaxRowBytes && rows <= kMaxRows, "LDTILECFG: a tile is too large");
    require((row_bytes == 0) == (rows == 0), "LDTILECFG: rows without bytes, or bytes without");
    state.tiles[i].rows = rows;
    state.tiles[i].row_bytes = row_bytes;
  }
  state.configured = true;
}

// Subnormal numbers count as zero, whatever the floating-point environment is.
float flushed(float value) {
  return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value;
}
float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return flushed(value);
}

// Shapes of sums (M, N), inputs (M, K), weights (K, N); K and N in units of four bytes.
void check_product(const Tile& sums, const Tile& inputs, const Tile& weights) {
  require(&sums != &inputs && &sums != &weights && &inputs != &weights,
          "a product with a register twice");
  require(sums.rows == inputs.rows, "a product whose inputs and sums differ in rows");
  require(sums.row_bytes == weights.row_bytes, "a product whose weights and sums differ in width");
  require(inputs.row_bytes == 4 * weights.rows, "a product whose inputs and weights differ in k");
  require(sums.row_bytes % 4 == 0, "a product of broken columns");
}

template <class Input, class Weight>
void multiply_bytes(Tile& sums, const Tile& inputs, const Tile& weights) {
  check_product(sums, inputs, weights);
  for (int m = 0; m < sums.rows; ++m) {
    for (int n = 0; n < sums.row_bytes / 4; ++n) {
      std::int32_t sum = sums.at<std::int32_t>(m, n);
      for (int k = 0; k < weights.rows; ++k) {
        for (int i = 0; i < 4; ++i) {
          sum += std::int32_t{inputs.at<Input>(m, 4 * k + i)} *
                 std::int32_t{weights.at<Weight>(k, 4 * n + i)};
        }
      }
      sums.set(m, n, sum);
    }
  }
}

// Even and odd elements of k separately, then their sum, then the old value is added. Loops over
// columns are innermost, on plain arrays: the compiler makes vectors of them. The amx table
// requires AVX-512, so each processor that emulates tiles has FMA.
__attribute__((target("avx2,fma"))) void multiply_bf16(Tile& sums, const Tile& inputs,
                                                       const Tile& weights) {
  check_product(sums, inputs, weights);
  constexpr int kColumns = kMaxRowBytes / 4;
  const int n_halves = 2 * weights.rows;
  float columns[2 * kMaxRows][kColumns];
  for (int k = 0; k < n_halves; ++k) {
    for (int n = 0; n < kColumns; ++n) {
      columns[k][n] = from_bf16(weights.at<std::uint16_t>(k / 2, 2 * n + k % 2));
    }
  }
  for (int m = 0; m < sums.rows; ++m) {
    float parts[2][kColumns] = {};
    for (int k = 0; k < n_halves; ++k) {
      const float input = from_bf16(inputs.at<std::uint16_t>(m, k));
      float* const part = parts[k % 2];
      for (int n = 0; n < kColumns; ++n) {
        part[n] = flushed(std::fma(input, columns[k][n], part[n]));
      }
    }
    float row[kColumns];
    std::memcpy(row, sums.bytes[m], sizeof row);
    for (int n = 0; n < kColumns; ++n) {
      row[n] = flushed(flushed(row[n]) + flushed(parts[0][n] + parts[1][n]));
    }
    std::memcpy(sums.bytes[m], row, static_cast<std::size_t>(sums.row_bytes));
  }
}

// One instruction in VEX's long form, with its decoded operands.
class Instruction {
 public:
  Instruction(const std::uint8_t* at, const greg_t* registers)
      : registers_(registers), begin_(at), next_(at + 5) {
    known_ = at[0] == 0xC4 && (at[1] & 0x1F) == 2 && (at[2] & 0x84) == 0 &&  // 0F38, W0, 128
             (at[3] == 0x49 || at[3] == 0x4B || at[3] == 0x5C || at[3] == 0x5E);
    if (!known_) return;  // another one may have an address of a form that tiles never have
    index_bit_ = (at[1] & 0x40) != 0 ? 0 : 8;
    base_bit_ = (at[1] & 0x20) != 0 ? 0 : 8;
    vvvv_ = ~at[2] >> 3 & 15;
    prefix_ = at[2] & 3;
    opcode_ = at[3];
    mode_ = at[4] >> 6;
    reg_ = at[4] >> 3 & 7;
    rm_ = at[4] & 7;
    if (mode_ != 3) read_address();
  }

  bool known() const { return known_; }
  int opcode() const { return opcode_; }
  int prefix() const { return prefix_; }  // 0 none, 1 66, 2 F3, 3 F2
  bool has_address() const { return mode_ != 3; }
  int reg() const { return reg_; }
  int rm() const { return rm_; }
  int vvvv() const { return vvvv_; }
  std::uint8_t* address() const { return reinterpret_cast<std::uint8_t*>(address_); }
  std::uint8_t* row(int i) const { return address() + i * stride_; }
  std::size_t length() const { return static_cast<std::size_t>(next_ - begin_); }

 private:
  std::int64_t value_of(int number) const {
    constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return registers_[kOrder[number]];
  }

  // In an address with an index register, the index is the distance between rows.
  void read_address() {
    std::int64_t base = 0;
    bool has_base = true;
    if (rm_ == 4) {
      const std::uint8_t sib = *next_++;
      const int index = (sib >> 3 & 7) + index_bit_;
      if (index != 4) stride_ = value_of(index) * (1 << (sib >> 6));
      has_base = mode_ != 0 || (sib & 7) != 5;
      if (has_base) base = value_of((sib & 7) + base_bit_);
    } else if (mode_ == 0 && rm_ == 5) {
      fault("an address relative to the instruction");
    } else {
      base = value_of(rm_ + base_bit_);
    }
    std::int64_t displacement = 0;
    if (mode_ == 1) {
      std::int8_t byte;
      std::memcpy(&byte, next_, sizeof byte);
      displacement = byte;
      next_ += sizeof byte;
    } else if (mode_ == 2 || !has_base) {
      std::int32_t four;
      std::memcpy(&four, next_, sizeof four);
      displacement = four;
      next_ += sizeof four;
    }
    address_ = base + displacement;
  }

  const greg_t* registers_;
  const std::uint8_t* begin_;
  const std::uint8_t* next_;
  bool known_ = false;
  int index_bit_ = 0, base_bit_ = 0, vvvv_ = 0, prefix_ = 0, opcode_ = 0;
  int mode_ = 0, reg_ = 0, rm_ = 0;
  std::int64_t address_ = 0, stride_ = 0;
};

bool configure(const Instruction& instruction) {
  if (instruction.has_address()) {
    if (instruction.prefix() != 0 || instruction.reg() != 0) return false;
    load_config(instruction.address());  // LDTILECFG
    return true;
  }
  if (instruction.prefix() == 0) {  // TILERELEASE
    state = TileState();
    return true;
  }
  if (instruction.prefix() != 3) return false;
  configured_tile(instruction.reg()).clear();  // TILEZERO
  return true;
}

bool move(const Instruction& instruction) {
  if (!instruction.has_address() || instruction.rm() != 4) return false;
  Tile& tile = configured_tile(instruction.reg());
  const auto n_bytes = static_cast<std::size_t>(tile.row_bytes);
  if (instruction.prefix() == 2) {  // TILESTORED
    for (int i = 0; i < tile.rows; ++i) std::memcpy(instruction.row(i), tile.bytes[i], n_bytes);
    return true;
  }
  if (instruction.prefix() == 0) return false;
  tile.clear();  // TILELOADD, TILELOADDT1
  for (int i = 0; i < tile.rows; ++i) std::memcpy(tile.bytes[i], instruction.row(i), n_bytes);
  return true;
}

bool multiply(const Instruction& instruction) {
  if (instruction.has_address()) return false;
  Tile& sums = configured_tile(instruction.reg());
  const Tile& inputs = configured_tile(instruction.rm());
  const Tile& weights = configured_tile(instruction.vvvv());
  if (instruction.opcode() == 0x5C) {
    if (instruction.prefix() != 2) return false;
    multiply_bf16(sums, inputs, weights);  // TDPBF16PS
    return true;
  }
  switch (instruction.prefix()) {
    case 0:
      multiply_bytes<std::uint8_t, std::uint8_t>(sums, inputs, weights);  // TDPBUUD
      break;
    case 1:
      multiply_bytes<std::uint8_t, std::int8_t>(sums, inputs, weights);  // TDPBUSD
      break;
    case 2:
      multiply_bytes<std::int8_t, std::uint8_t>(sums, inputs, weights);  // TDPBSUD
      break;
    default:
      multiply_bytes<std::int8_t, std::int8_t>(sums, inputs, weights);  // TDPBSSD
      break;
  }
  return true;
}

bool carry_out(const Instruction& instruction) {
  if (!instruction.known()) return false;
  switch (instruction.opcode()) {
    case 0x49:
      return configure(instruction);
    case 0x4B:
      return move(instruction);
    case 0x5C:
    case 0x5E:
      return multiply(instruction);
    default:
      return false;
  }
}

// A signal costs more than an instruction: those that follow each other are carried out together.
void on_unknown_instruction(int, siginfo_t*, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  bool is_ours = false;
  for (;;) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]);
    const Instruction instruction(at, registers);
    if (!carry_out(instruction)) break;
    registers[REG_RIP] += static_cast<greg_t>(instruction.length());
    is_ours = true;
  }
  // Otherwise the signal comes again and ends the process.
  if (!is_ours) signal(SIGILL, SIG_DFL);
}

}  // namespace

bool emulate_tiles() {
  static const bool kInstalled = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_unknown_instruction;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGILL, &action, nullptr) == 0;
  }();
  return kInstalled;
}

}  // namespace outrider::test

#else

namespace outrider::test {
bool emulate_tiles() { return false; }
}  // namespace outrider::test

#endif
